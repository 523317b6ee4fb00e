#include "train/state/state_snapshot.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "checkpoint/format/safetensors.h"
#include "checkpoint/store.h"
#include "optim/rank_optimizer.h"
#include "temp_dir.h"
#include "train/state/restore.h"
#include "zero_gradients.h"

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

class SavingRank {
 public:
  SavingRank(comm::World& world, const Setting& setting, const parallel::ParameterTable& logical)
      : table(logical),
        place{.rank = world.rank(), .ranks = world.size()},
        rank(world, setting, table),
        optimizer(rank),
        snapshot({.request = {.table = table,
                              .layout = setting.layout,
                              .layers = setting.model.layers,
                              .tied_embeddings = setting.model.has_tied_embeddings,
                              .bucket_elements = setting.bucket_elements},
                  .rank = world.rank(),
                  .store = rank.store,
                  .optimizer = optimizer.optimizer,
                  .memory_file = {}}) {}

  // Of all ranks that have a part of a gradient one has all of it, so that every layout has the same sums.
  void train_step(int64_t step) {
    const int64_t chunks = rank.placement.shards_weights() ? rank.placement.chunks() : 1;
    test::zero_gradients(rank.store, rank.stream);
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

  checkpoint::Manifest save(const checkpoint::Store& store) {
    ThreadPool pool(3);
    snapshot.take(rank.stream);
    snapshot.finish(pool);
    const auto write = [&](File& file) {
      checkpoint::write_image(file, snapshot.image().memory());
      return checkpoint::digests_of(snapshot.image().memory(), pool);
    };
    return store.write_part({.run_id = "r", .step = 1}, place, {snapshot.image().pieces(), write}, 1);
  }

  void restore(checkpoint::Loaded& loaded) {
    train::restore(rank.stream, loaded, {.table = table, .store = rank.store, .optimizer = &optimizer.optimizer});
  }

  const parallel::ParameterTable& table;
  checkpoint::Part place;
  LayoutRank rank;
  RankOptimizer optimizer;
  StateSnapshot snapshot;
};

// Runs `body` on every rank and saves what they then hold.
template <class Body>
void save_after(const Setting& setting, checkpoint::Store& store, const Body& body) {
  const parallel::ParameterTable table = table_of(setting.model);
  std::mutex mutex;
  std::vector<checkpoint::Manifest> parts;
  comm::run_local_ranks(static_cast<int>(setting.layout.world()), [&](comm::World& world) {
    SavingRank rank(world, setting, table);
    body(rank);
    checkpoint::Manifest part = rank.save(store);
    const std::lock_guard lock(mutex);
    parts.push_back(std::move(part));
  });
  store.commit(checkpoint::merge(parts, "parts"));
}

State state_in(checkpoint::Store& store) {
  State state;
  checkpoint::Loaded loaded = store.open(1);
  for (const checkpoint::TensorInfo& info : loaded.manifest().tensors) {
    Held& held = state[{info.name, info.kind}];
    held = {info.dtype, info.shape, {}};
    held.bytes.resize(static_cast<size_t>(info.shape.elements() * size_of(info.dtype)));
    loaded.load_tensor(info.kind, info.name, Tensor(held.bytes.data(), info.dtype, info.shape));
  }
  return state;
}

void train_on(const Setting& setting, checkpoint::Store& store) {
  save_after(setting, store, [](SavingRank& rank) {
    for (int64_t step = 0; step < 2; ++step) rank.train_step(step);
  });
}

void expect_weights(SavingRank& saving, const State& state) {
  if (saving.rank.placement.shards_weights()) return;
  // Every rank has all the weights that it needs, not just those that it updates.
  for (const Parameter& parameter : saving.rank.store.all()) {
    const Held& whole = state.at({parameter.spec->name, TensorKind::weights});
    void* data = const_cast<std::byte*>(whole.bytes.data());
    const Tensor expected(data, whole.dtype, whole.shape);
    for_each_element(*parameter.placed, [&](const Piece&, int64_t local, int64_t element) {
      ASSERT_EQ(value_at(parameter.weight, local), value_at(expected, element)) << parameter.spec->name;
    });
  }
}

const Layout kLayouts[] = {
    {.data = 3},
    {.context = 2, .data = 2, .shards_optimizer = true},
    {.tensor = 4, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.tensor = 2, .pipeline = 2, .chunks = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
    {.tensor = 2, .chunks = 2, .data = 3, .shards_weights = true},
};

const Transformer kGpt{.layers = 4, .hidden = 24, .positions = 10};
const Transformer kLlama{
    .layers = 4, .hidden = 24, .kv_heads = 2, .is_gated = true, .has_bias = false, .has_tied_embeddings = false};

TEST(StateSnapshot, IsThatOfOneRankOnEveryLayout) {
  for (const Transformer& model : {kGpt, kLlama}) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      const megalith::testing::TempDir directory;
      checkpoint::Store alone(directory / "alone");
      train_on({.model = model, .compute = compute}, alone);
      const State expected = state_in(alone);
      EXPECT_EQ(expected.size(), table_of(model).size() * (compute == DType::bf16 ? 4 : 3));
      for (const Layout& layout : kLayouts) {
        SCOPED_TRACE(to_string(layout));
        const Setting setting{.model = model, .layout = layout, .compute = compute};
        checkpoint::Store trained(directory / to_string(layout));
        train_on(setting, trained);
        EXPECT_TRUE(state_in(trained) == expected);
        checkpoint::Store restored(directory / (to_string(layout) + " restored"));
        save_after(setting, restored, [&](SavingRank& rank) {
          checkpoint::Loaded loaded = alone.open(1);
          rank.restore(loaded);
          expect_weights(rank, expected);
        });
        EXPECT_TRUE(state_in(restored) == expected);
      }
    }
  }
}

TEST(StateSnapshot, WorkIsSharedEvenly) {
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(to_string(layout));
    const megalith::testing::TempDir directory;
    checkpoint::Store store(directory.path());
    save_after({.model = kGpt, .layout = layout, .bucket_elements = 100}, store, [](SavingRank&) {});
    int64_t largest = 0;
    int64_t sum = 0;
    const checkpoint::Loaded saved = store.open(1);
    for (const checkpoint::ShardInfo& shard : saved.manifest().shards) {
      largest = std::max(largest, shard.digests.bytes);
      sum += shard.digests.bytes;
    }
    EXPECT_LT(static_cast<double>(largest), 2.0 * static_cast<double>(sum) / static_cast<double>(layout.world()));
  }
}

TEST(StateSnapshot, AnImageStaysWhileTheOtherIsTaken) {
  const megalith::testing::TempDir directory;
  const auto digest = [](SavingRank& rank) {
    ThreadPool pool(1);
    return checkpoint::digests_of(rank.snapshot.image().memory(), pool).whole;
  };
  const parallel::ParameterTable table = table_of(kGpt);
  comm::run_local_ranks(1, [&](comm::World& world) {
    SavingRank rank(world, {.model = kGpt, .compute = DType::bf16}, table);
    rank.snapshot.add_image(directory / "second");
    ThreadPool pool(1);
    std::vector<std::string> digests;
    for (const size_t image : {0, 1, 0}) {
      rank.train_step(std::ssize(digests));
      rank.snapshot.turn_to(image);
      rank.snapshot.take(rank.rank.stream);
      rank.snapshot.finish(pool);
      digests.push_back(digest(rank));
      rank.snapshot.turn_to(1 - image);
      if (digests.size() > 1) {
        EXPECT_EQ(digest(rank), digests[digests.size() - 2]);
      }
    }
    EXPECT_NE(digests[0], digests[2]);
    EXPECT_THROW(rank.snapshot.add_image(directory / "no such directory/third"), Error);
  });
}

TEST(StateSnapshot, TakesAnotherPrecision) {
  const megalith::testing::TempDir directory;
  checkpoint::Store exact(directory / "f32");
  train_on({.model = kGpt, .compute = DType::f32}, exact);
  const Setting bf16{.model = kGpt, .layout = {.data = 2, .shards_optimizer = true}, .compute = DType::bf16};
  checkpoint::Store rounded(directory / "bf16");
  save_after(bf16, rounded, [&](SavingRank& rank) {
    checkpoint::Loaded loaded = exact.open(1);
    rank.restore(loaded);
  });
  checkpoint::Store again(directory / "again");
  save_after({.model = kGpt, .compute = DType::f32}, again, [&](SavingRank& rank) {
    checkpoint::Loaded loaded = rounded.open(1);
    rank.restore(loaded);
  });
  EXPECT_TRUE(state_in(again) == state_in(exact)) << "master weights keep every bit";
}

}  // namespace
}  // namespace megalith::train
