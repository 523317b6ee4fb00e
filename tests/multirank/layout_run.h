#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/local/local_world.h"
#include "core/rng.h"
#include "engine/engine.h"
#include "plan/rehearsal.h"
#include "train/state/rank_state.h"

namespace megalith::train::testing {

// A small model trained for some steps on a layout, each rank a thread.
struct LayoutCase {
  model::ModelConfig config;
  parallel::Layout layout = {};
  int64_t micro_batch = 1;
  int64_t global_batch = 8;
  int64_t length = 16;
  int64_t steps = 3;
  bool masks_some_tokens = true;
  int64_t documents = 0;  // of each sample, where attention minds them
  bool reduces_in_bf16 = false;
  int64_t bucket_elements = 3000;
  double epsilon = 1e-8;   // of Adam
  double clip_norm = 1.0;  // 0: gradients are not clipped
  double learning_rate = 0.01;
};

// What a rank would give to a checkpoint.
struct OwnedWeights {
  std::string name;
  Shape whole;
  checkpoint::Box box;
  std::vector<float> values;

  bool operator==(const OwnedWeights&) const = default;
};

struct LayoutOutcome {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<double> validations;  // after each step
  std::vector<OwnedWeights> owned;
  std::map<std::string, std::vector<float>> weights;    // by name, from what all ranks own
  std::map<std::string, float> scales;                  // of fp8 operands, on all ranks that have a part of them
  std::vector<std::pair<std::string, int64_t>> unused;  // bytes of each arena that were never needed

  bool operator==(const LayoutOutcome&) const = default;
};

inline uint32_t draw(int64_t sample, int64_t position, int64_t what) {
  return philox(static_cast<uint64_t>(what), {static_cast<uint32_t>(sample), static_cast<uint32_t>(position), 0, 0})[0];
}

inline data::StepBatch batch_of(const LayoutCase& test, int64_t step, int64_t data_rank) {
  const int64_t data_ranks = test.layout.data;
  data::StepBatch batch;
  for (int64_t m = 0; m < test.global_batch / (test.micro_batch * data_ranks); ++m) {
    data::MicroBatch micro{.batch = test.micro_batch, .length = test.length};
    for (int64_t b = 0; b < test.micro_batch; ++b) {
      const int64_t sample = step * test.global_batch + (m * data_ranks + data_rank) * test.micro_batch + b;
      micro.sample_ids.push_back(sample);
      for (int64_t t = 0; t < test.length; ++t) {
        const auto token = [&](int64_t position) {
          return static_cast<int32_t>(draw(sample, position, 1) % static_cast<uint32_t>(test.config.vocabulary));
        };
        micro.inputs.push_back(token(t));
        micro.targets.push_back(token(t + 1));
        micro.weights.push_back(test.masks_some_tokens && draw(sample, t, 2) % 4 == 0 ? 0.0F : 1.0F);
        batch.total_weight += micro.weights.back();
        if (test.documents == 0) continue;
        const int64_t of_document = ceil_div(test.length, test.documents);
        micro.document_starts.push_back(static_cast<int32_t>(t / of_document * of_document));
        micro.position_ids.push_back(static_cast<int32_t>(t % of_document));
      }
    }
    batch.micro_batches.push_back(std::move(micro));
  }
  return batch;
}

inline engine::EngineOptions engine_options(const LayoutCase& test) {
  return {.stage = {.config = test.config,
                    .layout = test.layout,
                    .batch = test.micro_batch,
                    .length = test.length,
                    .micro_batches = test.global_batch / (test.micro_batch * test.layout.data),
                    .bucket_elements = test.bucket_elements,
                    .reduces_in_bf16 = test.reduces_in_bf16},
          .seed = 11,
          .optimizer = {.optim = {.lr = test.learning_rate, .eps = test.epsilon}, .clip_norm = test.clip_norm},
          .deadline = 60.0};
}

inline std::vector<std::pair<std::string, int64_t>> unused_bytes(const engine::Arenas& arenas) {
  std::vector<std::pair<std::string, int64_t>> unused;
  for (const Arena* arena : arenas.all()) {
    unused.emplace_back(arena->name(), arena->capacity() - arena->peak());
  }
  return unused;
}

inline std::vector<OwnedWeights> owned_weights(const checkpoint::ShardImage& image) {
  std::vector<OwnedWeights> owned;
  for (size_t i = 0; i < image.pieces().size(); ++i) {
    const checkpoint::ShardContent::Piece& piece = image.pieces()[i];
    if (piece.kind != checkpoint::TensorKind::weights) continue;
    const Tensor tensor = image.tensor(i);
    OwnedWeights& weights = owned.emplace_back(OwnedWeights{piece.name, piece.whole, piece.box, {}});
    dispatch_float(tensor.dtype, [&]<class T>(std::type_identity<T>) {
      for (int64_t k = 0; k < tensor.elements(); ++k) weights.values.push_back(static_cast<float>(tensor.as<T>()[k]));
    });
  }
  return owned;
}

// Whole tensors from the parts of all ranks.
inline std::map<std::string, std::vector<float>> whole_weights(const std::vector<LayoutOutcome>& outcomes) {
  std::map<std::string, std::vector<float>> whole;
  for (const LayoutOutcome& outcome : outcomes) {
    for (const OwnedWeights& owned : outcome.owned) {
      std::vector<float>& values = whole[owned.name];
      values.resize(static_cast<size_t>(owned.whole.elements()));
      const bool has_columns = owned.whole.rank() > 1;
      const int64_t columns = has_columns ? owned.box.extent[1] : 1;
      for (int64_t i = 0; i < owned.box.extent.elements(); ++i) {
        const int64_t row = owned.box.offset[0] + i / columns;
        const int64_t column = (has_columns ? owned.box.offset[1] : 0) + i % columns;
        values[static_cast<size_t>(row * (has_columns ? owned.whole[1] : 1) + column)] =
            owned.values[static_cast<size_t>(i)];
      }
    }
  }
  return whole;
}

inline engine::Engine make_engine(const engine::EngineOptions& options, comm::World& world) {
  return engine::Engine(options, world, plan::memory_of_rank(options.stage, world.rank()).arenas);
}

inline LayoutOutcome train_rank(const LayoutCase& test, comm::World& world) {
  engine::Engine engine = make_engine(engine_options(test), world);
  const std::string said(1001, 'x');  // more than is told at once
  MEGALITH_CHECK(engine.talk().broadcast(engine.place() == parallel::Coordinates{} ? said : "") == said,
                 "it was not heard");
  engine.initialise(5);
  const data::StepBatch held_out = batch_of(test, 1000, engine.place().dp);
  LayoutOutcome outcome;
  for (int64_t step = 0; step < test.steps; ++step) {
    const data::StepBatch batch = batch_of(test, step, engine.place().dp);
    engine.run_step({.step = step, .weight = batch.total_weight, .learning_rate = test.learning_rate},
                    batch.micro_batches);
    const engine::StepResult result = engine.result_of_step(0);
    outcome.losses.push_back(result.loss);
    outcome.norms.push_back(result.update.gradient_norm);
    const engine::EvaluationSum sum = engine.evaluate(held_out.micro_batches, held_out.total_weight);
    outcome.validations.push_back(sum.loss / sum.weight);
  }
  RankState state(engine);
  state.prepare_snapshots();
  state.take_snapshot();
  ThreadPool pool(1);
  state.snapshot().finish(pool);
  outcome.owned = owned_weights(state.snapshot().image());
  const model::Precision& precision = engine.precision();
  for (int64_t i = 0; precision.has_slots() && i < precision.scales().scale.elements(); ++i)
    outcome.scales[precision.name_of_slot(i)] = precision.scales().scale.as<float>()[i];
  outcome.unused = unused_bytes(engine.arenas());
  return outcome;
}

// What rank 0 saw, and of the unused memory the most of any rank; every rank must have seen the same losses and norms.
inline LayoutOutcome train_on(const LayoutCase& test) {
  std::vector<LayoutOutcome> outcomes(static_cast<size_t>(test.layout.world()));
  if (test.layout.world() == 1) {
    outcomes.front() = train_rank(test, *comm::make_lone_world(Device::cpu));
  } else {
    comm::run_local_ranks(static_cast<int>(test.layout.world()), [&](comm::World& world) {
      outcomes[static_cast<size_t>(world.rank())] = train_rank(test, world);
    });
  }
  LayoutOutcome& first = outcomes.front();
  first.weights = whole_weights(outcomes);
  for (const LayoutOutcome& outcome : outcomes) {
    MEGALITH_CHECK(outcome.losses == first.losses && outcome.norms == first.norms, "ranks do not agree");
    for (const auto& [operand, scale] : outcome.scales) {
      MEGALITH_CHECK(first.scales.try_emplace(operand, scale).first->second == scale, "ranks scale {} otherwise",
                     operand);
    }
    for (size_t i = 0; i < first.unused.size(); ++i) {
      first.unused[i].second = std::max(first.unused[i].second, outcome.unused[i].second);
    }
  }
  return first;
}

}  // namespace megalith::train::testing
