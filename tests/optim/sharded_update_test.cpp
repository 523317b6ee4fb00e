#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "optim/rank_optimizer.h"

namespace megalith::optim::testing {
namespace {

using parallel::Parameter;
using parallel::ParameterTable;
using parallel::Piece;

constexpr int64_t kSteps = 3;
// By logical name, whole.
using Values = std::map<std::string, std::vector<double>>;

std::vector<double>& values_of(Values& values, const parallel::ParameterSpec& spec) {
  std::vector<double>& found = values[spec.name];
  found.resize(static_cast<size_t>(spec.shape.elements()));
  return found;
}

// What a rank's backward would leave: each replica, each holder of a partial piece and each holder of a tied embedding
// has a part of its own. Adds to `total` what is summed in the end.
void make_gradients(LayoutRank& rank, int64_t step, Values& total) {
  for (const Parameter& parameter : rank.store.all()) {
    std::vector<double>& sums = values_of(total, *parameter.spec);
    for_each_element(*parameter.placed, [&](const Piece& piece, int64_t local, int64_t whole) {
      const int64_t part = piece.gradient_is_partial ? piece.replica : 0;
      uint64_t key = named_key(static_cast<uint64_t>(step), parameter.spec->name);
      for (const int64_t place : {rank.replica, part, rank.place.pp}) key = mix_key(key, static_cast<uint64_t>(place));
      const double value = exact_value(key, whole);
      set_value(parameter.gradient, local, value);
      if (piece.gradient_is_partial || piece.is_owner()) sums[static_cast<size_t>(whole)] += value;
    });
  }
}

struct Outcome {
  std::vector<double> norms;
  Values weights;
};

// One rank with all parameters, updated from gradients that are already summed.
Outcome update_whole(const Setting& setting, const ParameterTable& table, std::vector<Values>& gradients) {
  Outcome outcome;
  Setting whole = setting;
  whole.layout = {};
  comm::run_local_ranks(1, [&](comm::World& world) {
    LayoutRank rank(world, whole, table);
    RankOptimizer optimizer(rank);
    for (int64_t step = 0; step < kSteps; ++step) {
      for (const Parameter& parameter : rank.store.all()) {
        const std::vector<double>& values = gradients[static_cast<size_t>(step)].at(parameter.spec->name);
        for (size_t i = 0; i < values.size(); ++i) set_value(parameter.gradient, static_cast<int64_t>(i), values[i]);
      }
      outcome.norms.push_back(optimizer.update(rank, step));
    }
    for (const Parameter& parameter : rank.store.all()) {
      std::vector<double>& values = values_of(outcome.weights, *parameter.spec);
      for (size_t i = 0; i < values.size(); ++i) values[i] = value_at(parameter.weight, static_cast<int64_t>(i));
    }
  });
  return outcome;
}

// How far weights of all ranks are from those of one rank.
struct Difference {
  double largest = 0.0;
  double relative = 0.0;  // L2
};
Difference difference_from_one_rank(const Setting& setting) {
  SCOPED_TRACE(to_string(setting.layout));
  const ParameterTable table = table_of(setting.model);
  std::mutex mutex;
  std::vector<Values> gradients(kSteps);
  struct Seen {
    std::string name;
    int64_t element;
    double weight;
  };
  std::vector<Seen> seen;
  std::vector<std::pair<int64_t, double>> norms;  // by step
  comm::run_local_ranks(static_cast<int>(setting.layout.world()), [&](comm::World& world) {
    LayoutRank rank(world, setting, table);
    RankOptimizer optimizer(rank);
    for (int64_t step = 0; step < kSteps; ++step) {
      rank.gather_all();
      {
        const std::lock_guard lock(mutex);
        make_gradients(rank, step, gradients[static_cast<size_t>(step)]);
      }
      rank.reduce_all();
      const double norm = optimizer.update(rank, step);
      const std::lock_guard lock(mutex);
      norms.emplace_back(step, norm);
    }
    rank.gather_all();
    const std::lock_guard lock(mutex);
    for (const Parameter& parameter : rank.store.all()) {
      for_each_element(*parameter.placed, [&](const Piece&, int64_t local, int64_t whole) {
        seen.push_back({parameter.spec->name, whole, value_at(parameter.weight, local)});
      });
    }
  });
  const Outcome expected = update_whole(setting, table, gradients);
  for (const auto& [step, norm] : norms) {
    const double tolerance = setting.sync.reduces_in_bf16 ? 1e-2 : 0.0;
    EXPECT_NEAR(norm / expected.norms[static_cast<size_t>(step)], 1.0, tolerance);
  }
  Difference found;
  double squares = 0.0;
  for (const Seen& s : seen) {
    const double difference = std::abs(s.weight - expected.weights.at(s.name)[static_cast<size_t>(s.element)]);
    found.largest = std::max(found.largest, difference);
    found.relative += difference * difference;
    squares += s.weight * s.weight;
  }
  found.relative = std::sqrt(found.relative / squares);
  return found;
}

double largest_difference(const Setting& setting) {
  return difference_from_one_rank(setting).largest;
}

Transformer small_gpt() {
  return {.layers = 4, .hidden = 24, .positions = 10};
}
Transformer small_llama() {
  return {.layers = 4, .hidden = 24, .kv_heads = 2, .is_gated = true, .has_bias = false, .has_tied_embeddings = false};
}

TEST(ShardedUpdate, ReplicasMoveAsOneRankOnTheSummedGradients) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const bool sharded : {false, true}) {
      for (const parallel::Layout& layout : {parallel::Layout{.data = 2, .shards_optimizer = sharded},
                                             parallel::Layout{.context = 2, .data = 3, .shards_optimizer = sharded}}) {
        EXPECT_EQ(largest_difference({.model = small_gpt(), .layout = layout, .compute = compute}), 0.0);
      }
    }
  }
}

TEST(ShardedUpdate, TensorParallelRanksAddUpWhatEachHasAPartOf) {
  for (const bool sharded : {false, true}) {
    for (const bool sequence_parallel : {false, true}) {
      const parallel::Layout layout{
          .tensor = 2, .data = 2, .sequence_parallel = sequence_parallel, .shards_optimizer = sharded};
      EXPECT_EQ(largest_difference({.model = small_gpt(), .layout = layout}), 0.0);
      // More ranks than key and value heads.
      parallel::Layout wide = layout;
      wide.tensor = 4;
      EXPECT_EQ(largest_difference({.model = small_llama(), .layout = wide, .compute = DType::bf16}), 0.0);
    }
  }
}

TEST(ShardedUpdate, TiedEmbeddingsOnTwoStagesStayEqual) {
  for (const bool sharded : {false, true}) {
    for (const int64_t data : {1, 2}) {
      EXPECT_EQ(largest_difference({.model = small_gpt(),
                                    .layout = {.tensor = 2,
                                               .pipeline = 2,
                                               .chunks = 2,
                                               .data = data,
                                               .sequence_parallel = true,
                                               .shards_optimizer = sharded}}),
                0.0);
    }
  }
}

TEST(ShardedUpdate, GradientsMayTravelAsBf16) {
  for (const bool sharded : {false, true}) {
    const Difference found = difference_from_one_rank({.model = small_gpt(),
                                                       .layout = {.data = 4, .shards_optimizer = sharded},
                                                       .sync = {.reduces_in_bf16 = true},
                                                       .bucket_elements = 500});
    EXPECT_GT(found.relative, 0.0);
    EXPECT_LT(found.relative, 2e-3);
  }
}

}  // namespace
}  // namespace megalith::optim::testing
