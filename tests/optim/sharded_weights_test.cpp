#include <gtest/gtest.h>

#include <cmath>

#include "optim/rank_optimizer.h"
#include "parallel/placement_bytes.h"
#include "parallel/schedule/data_parallel_actions.h"

namespace megalith::optim::testing {
namespace {

using parallel::Action;
using parallel::ActionKind;
using parallel::Parameter;
using parallel::Piece;
using parallel::WeightLife;

constexpr int64_t kSteps = 3;

// Runs steps as a trainer does, with made-up gradients in place of backward.
class Run {
 public:
  Run(LayoutRank& rank, int64_t micro_batches)
      : rank_(rank),
        optimizer_(rank),
        life_(rank.placement.shards_weights() ? WeightLife::use : WeightLife::step),
        schedule_(parallel::with_data_parallel(parallel::single_stage_schedule(micro_batches, rank.placement.chunks()),
                                               life_, rank.placement.chunks_of_buckets())) {}

  void run_step(int64_t step) {
    if (life_ == WeightLife::step) rank_.store.zero_summed_gradients(rank_.stream);
    for (const Action& action : schedule_) run_action(action, step);
    rank_.sync.finish_reductions(rank_.stream);
    optimizer_.update(rank_, step);
  }

  // Of every use of a weight, and the state in the end.
  std::vector<double> seen;

  void see_state() {
    for (const State& state : optimizer_.optimizer.states()) {
      for (const Tensor& tensor : {state.weight, state.exp_avg, state.exp_avg_sq}) {
        for (int64_t i = 0; i < tensor.elements(); ++i) seen.push_back(value_at(tensor, i));
      }
    }
  }

 private:
  void run_action(const Action& action, int64_t step) {
    switch (action.kind) {
      case ActionKind::gather_weights:
        return rank_.sync.start_gather(rank_.stream, action.chunk);
      case ActionKind::release_weights:
        rank_.sync.release_weights(action.chunk);
        return spoil_weights(action.chunk);
      case ActionKind::forward:
        return use_weights(action.chunk);
      case ActionKind::backward:
        use_weights(action.chunk);
        rank_.sync.prepare_gradients(rank_.stream, action.chunk);
        return add_gradients(action, step);
      case ActionKind::reduce_bucket:
        return rank_.sync.start_reduce(rank_.stream, action.bucket);
      default:
        FAIL();
    }
  }

  int64_t last_chunk() const { return rank_.placement.chunks() - 1; }
  bool is_used_by(const Parameter& parameter, int64_t chunk) const {
    return parameter.placed->chunk == chunk || (parameter.placed->spans_chunks && chunk == last_chunk());
  }

  void use_weights(int64_t chunk) {
    rank_.sync.wait_for_weights(rank_.stream, chunk);
    for (const Parameter& parameter : rank_.store.all()) {
      if (!is_used_by(parameter, chunk)) continue;
      double sum = 0.0;
      for (int64_t i = 0; i < parameter.weight.elements(); ++i) sum += value_at(parameter.weight, i);
      seen.push_back(sum);
    }
  }

  void spoil_weights(int64_t chunk) {
    for (const Parameter& parameter : rank_.store.all()) {
      if (parameter.placed->chunk != chunk || parameter.placed->spans_chunks) continue;
      for (int64_t i = 0; i < parameter.weight.elements(); ++i) set_value(parameter.weight, i, NAN);
    }
  }

  void add_gradients(const Action& action, int64_t step) {
    const bool is_first = action.micro_batch == 0 || life_ == WeightLife::use;
    for (const Parameter& parameter : rank_.store.all()) {
      if (!is_used_by(parameter, action.chunk)) continue;
      // A tied embedding gets its first part from the head.
      const bool is_second_use = parameter.placed->spans_chunks && action.chunk != last_chunk();
      const bool overwrites = is_first && parameter.placed->gradient_by_product && !is_second_use;
      for_each_element(*parameter.placed, [&](const Piece& piece, int64_t local, int64_t whole) {
        const int64_t part = piece.gradient_is_partial ? piece.replica : 0;
        uint64_t key = named_key(static_cast<uint64_t>(step), parameter.spec->name);
        for (const int64_t place : {rank_.replica, part, action.chunk, action.micro_batch})
          key = mix_key(key, static_cast<uint64_t>(place));
        const double before = overwrites ? 0.0 : value_at(parameter.gradient, local);
        set_value(parameter.gradient, local, before + exact_value(key, whole));
      });
    }
  }

  LayoutRank& rank_;
  RankOptimizer optimizer_;
  WeightLife life_;
  parallel::Schedule schedule_;
};

// What each rank sees.
std::vector<std::vector<double>> seen_by_ranks(const Setting& setting, int64_t micro_batches) {
  const parallel::ParameterTable table = table_of(setting.model);
  std::vector<std::vector<double>> seen(static_cast<size_t>(setting.layout.world()));
  comm::run_local_ranks(static_cast<int>(setting.layout.world()), [&](comm::World& world) {
    LayoutRank rank(world, setting, table);
    Run run(rank, micro_batches);
    for (int64_t step = 0; step < kSteps; ++step) run.run_step(step);
    run.see_state();
    seen[static_cast<size_t>(world.rank())] = std::move(run.seen);
  });
  return seen;
}

void expect_as_with_sharded_optimizer(Setting setting, int64_t micro_batches) {
  SCOPED_TRACE(to_string(setting.layout));
  setting.layout.shards_weights = false;
  setting.layout.shards_optimizer = true;
  const auto expected = seen_by_ranks(setting, micro_batches);
  setting.layout.shards_weights = true;
  const auto actual = seen_by_ranks(setting, micro_batches);
  for (const double value : actual.front()) ASSERT_TRUE(std::isfinite(value));
  EXPECT_EQ(actual, expected);
}

Transformer tied() {
  return {.layers = 6, .hidden = 24, .positions = 10};
}
Transformer untied() {
  return {.layers = 6, .hidden = 24, .kv_heads = 2, .is_gated = true, .has_bias = false, .has_tied_embeddings = false};
}

TEST(ShardedWeights, TrainAsTheShardedOptimizerDoes) {
  for (const Transformer& model : {tied(), untied()}) {
    for (const int64_t chunks : {1, 2, 3, 6}) {
      for (const int64_t micro_batches : {1, 3}) {
        expect_as_with_sharded_optimizer({.model = model, .layout = {.chunks = chunks, .data = 3}}, micro_batches);
      }
    }
  }
}

TEST(ShardedWeights, GoWithTensorParallelism) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    expect_as_with_sharded_optimizer({.model = untied(),
                                      .layout = {.tensor = 4, .chunks = 3, .data = 2, .sequence_parallel = true},
                                      .compute = compute},
                                     2);
  }
}

TEST(ShardedWeights, GradientsMayTravelAsBf16) {
  const Setting setting{.model = tied(),
                        .layout = {.chunks = 3, .data = 2, .shards_weights = true},
                        .sync = {.reduces_in_bf16 = true},
                        .bucket_elements = 500};
  Setting exact = setting;
  exact.sync.reduces_in_bf16 = false;
  const auto rounded = seen_by_ranks(setting, 2);
  const auto expected = seen_by_ranks(exact, 2);
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    double difference = 0.0;
    double squares = 0.0;
    for (size_t i = 0; i < expected[rank].size(); ++i) {
      difference += std::pow(rounded[rank][i] - expected[rank][i], 2);
      squares += std::pow(expected[rank][i], 2);
    }
    EXPECT_LT(std::sqrt(difference / squares), 5e-3);
  }
}

TEST(ShardedWeights, TakeTheMemoryOfAShardAndTwoChunks) {
  const Transformer model = untied();
  const parallel::ParameterTable table = table_of(model);
  const auto bytes = [&](bool shards_weights) {
    const parallel::Placement placement(
        {.table = table,
         .layout = {.chunks = 6, .data = 8, .shards_optimizer = true, .shards_weights = shards_weights},
         .layers = model.layers},
        0, 0);
    return parallel::testing::bytes_of(placement, DType::f32, 0);
  };
  const auto whole = static_cast<double>(bytes(false).weights);
  // Two of six chunks, those with embedding and head larger than the others, and an eighth of all.
  EXPECT_LT(static_cast<double>(bytes(true).weights), (2.0 / 6 + 1.0 / 8 + 0.25) * whole);
  EXPECT_EQ(bytes(true).weights, bytes(true).gradients);
  EXPECT_EQ(bytes(true).moments, bytes(false).moments);
}

}  // namespace
}  // namespace megalith::optim::testing
