#include "train/whole_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>

#include "optim/rank_optimizer.h"

namespace megalith::train {
namespace {

using namespace parallel::testing;
using checkpoint::TensorKind;
using optim::testing::RankOptimizer;
using parallel::Layout;
using parallel::Parameter;
using parallel::Piece;

struct Held {
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;

  bool operator==(const Held&) const = default;
};
using State = std::map<std::pair<std::string, TensorKind>, Held>;

class WholeRank {
 public:
  WholeRank(comm::World& world, const Setting& setting, const parallel::ParameterTable& table)
      : rank(world, setting, table),
        optimizer(rank),
        whole({.request = {.table = table,
                           .layout = setting.layout,
                           .layers = setting.model.layers,
                           .tied_embeddings = setting.model.has_tied_embeddings,
                           .bucket_elements = setting.bucket_elements},
               .store = rank.store,
               .optimizer = &optimizer.optimizer,
               .world = rank.groups.world.get()},
              Device::cpu) {}

  // Of all ranks that have a part of a gradient one has all of it, so that every layout has the same sums.
  void train_step(int64_t step) {
    const int64_t chunks = rank.placement.shards_weights() ? rank.placement.chunks() : 1;
    rank.store.zero_gradients(rank.stream);
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
      rank.sync.prepare_gradients(rank.stream, chunk);
      for (const Parameter& parameter : rank.store.all()) {
        if (rank.placement.shards_weights() && parameter.placed->chunk != chunk) continue;
        for_each_element(*parameter.placed, [&](const Piece& piece, int64_t local, int64_t element) {
          const bool has_it =
              rank.replica == 0 && parameter.placed->is_owner && (!piece.gradient_is_partial || piece.is_owner());
          const uint64_t key = named_key(static_cast<uint64_t>(step), parameter.spec->name);
          set_value(parameter.gradient, local, has_it ? exact_value(key, element) : 0.0);
        });
      }
      for (size_t bucket = 0; bucket < rank.placement.buckets().size(); ++bucket) {
        if (!rank.placement.shards_weights() || rank.placement.buckets()[bucket].chunk == chunk)
          rank.sync.start_reduce(rank.stream, bucket);
      }
    }
    rank.sync.finish_reductions(rank.stream);
    optimizer.update(rank, step);
  }

  void collect(State& state) {
    whole.collect(rank.stream, [&](const checkpoint::NamedTensor& named) {
      const auto* begin = static_cast<const std::byte*>(named.tensor.data);
      const Held held{named.tensor.dtype, named.tensor.shape, {begin, begin + named.tensor.bytes()}};
      EXPECT_TRUE(state.emplace(std::make_pair(named.name, named.kind), held).second);
    });
  }

  void distribute(const State& state) {
    for (const auto& [key, held] : state) {
      // As a trainer does: weights come from their masters where there are some.
      if (key.second == TensorKind::weights && state.contains({key.first, TensorKind::master})) continue;
      void* data = const_cast<std::byte*>(held.bytes.data());
      whole.distribute(rank.stream, {key.first, key.second, Tensor(data, held.dtype, held.shape)});
    }
  }

  LayoutRank rank;
  RankOptimizer optimizer;
  WholeState whole;
};

template <class Body>
void run_ranks(const Setting& setting, const Body& body) {
  const parallel::ParameterTable table = table_of(setting.model);
  comm::run_local_ranks(static_cast<int>(setting.layout.world()), [&](comm::World& world) {
    WholeRank rank(world, setting, table);
    body(rank);
  });
}

State trained_on(const Setting& setting) {
  State state;
  run_ranks(setting, [&](WholeRank& rank) {
    for (int64_t step = 0; step < 2; ++step) rank.train_step(step);
    rank.collect(state);
  });
  return state;
}

State restored_on(const Setting& setting, const State& from) {
  State state;
  run_ranks(setting, [&](WholeRank& rank) {
    rank.distribute(from);
    rank.collect(state);
    if (rank.rank.placement.shards_weights()) return;
    // Every rank has all the weights that it needs, not just those that it updates.
    for (const Parameter& parameter : rank.rank.store.all()) {
      const Held& whole = from.at({parameter.spec->name, TensorKind::weights});
      void* data = const_cast<std::byte*>(whole.bytes.data());
      const Tensor expected(data, whole.dtype, whole.shape);
      for_each_element(*parameter.placed, [&](const Piece&, int64_t local, int64_t element) {
        ASSERT_EQ(value_at(parameter.weight, local), value_at(expected, element)) << parameter.spec->name;
      });
    }
  });
  return state;
}

const Layout kLayouts[] = {
    {.data = 3},
    {.context = 2, .data = 2, .shards_optimizer = true},
    {.tensor = 4, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.tensor = 2, .pipeline = 2, .chunks = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.tensor = 2, .chunks = 2, .data = 3, .shards_weights = true},
};

TEST(WholeState, IsThatOfOneRankOnEveryLayout) {
  const Transformer gpt{.layers = 4, .hidden = 24, .positions = 10};
  const Transformer llama{
      .layers = 4, .hidden = 24, .kv_heads = 2, .is_gated = true, .has_bias = false, .has_tied_embeddings = false};
  for (const Transformer& model : {gpt, llama}) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      const State expected = trained_on({.model = model, .compute = compute});
      EXPECT_EQ(expected.size(), table_of(model).size() * (compute == DType::bf16 ? 4 : 3));
      for (const Layout& layout : kLayouts) {
        SCOPED_TRACE(to_string(layout));
        const Setting setting{.model = model, .layout = layout, .compute = compute};
        EXPECT_TRUE(trained_on(setting) == expected);
        EXPECT_TRUE(restored_on(setting, expected) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace megalith::train
