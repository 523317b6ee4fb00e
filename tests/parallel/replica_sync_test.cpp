#include "parallel/replica_sync.h"

#include <gtest/gtest.h>

#include "layout_rank.h"

namespace megalith::parallel::testing {
namespace {

using comm::Operation;

int64_t slab_elements(const Placement& placement) {
  int64_t sum = 0;
  for (const Bucket& bucket : placement.buckets()) sum += bucket.elements();
  return sum;
}

int64_t calls_of(const comm::Communicator* group) {
  int64_t calls = 0;
  for (int operation = 0; operation < comm::kOperations; ++operation)
    calls += group->traffic(static_cast<Operation>(operation)).calls;
  return calls;
}

// Reference: fp32 gradients are reduce-scattered and bf16 weights gathered, (d - 1) / d of all bytes each; without
// sharding gradients are all-reduced, twice that of fp32.
TEST(ReplicaSync, MovesTheBytesThatTheFormulasSay) {
  constexpr int kReplicas = 3;
  const Transformer model{.layers = 3, .hidden = 24};
  const ParameterTable table = table_of(model);
  for (const bool sharded : {false, true}) {
    for (const bool as_bf16 : {false, true}) {
      comm::run_local_ranks(kReplicas, [&](comm::World& world) {
        LayoutRank rank(world,
                        {.model = model,
                         .layout = {.data = kReplicas, .shards_optimizer = sharded},
                         .compute = DType::bf16,
                         .sync = {.reduces_in_bf16 = as_bf16}},
                        table);
        rank.store.initialise(rank.stream, 1);
        rank.reduce_all();
        rank.gather_all();
        const comm::Communicator& group = *rank.groups.replicas;
        const int64_t elements = slab_elements(rank.placement);
        const auto wire = [&](Operation operation) {
          return comm::wire_bytes(operation, group.traffic(operation).bytes, kReplicas);
        };
        const double share = double{kReplicas - 1} / kReplicas * static_cast<double>(elements);
        const double gradient_bytes = as_bf16 ? 2.0 : 4.0;
        EXPECT_DOUBLE_EQ(wire(Operation::reduce_scatter), sharded ? gradient_bytes * share : 0.0);
        EXPECT_DOUBLE_EQ(wire(Operation::all_gather), sharded ? 2.0 * share : 0.0);
        EXPECT_DOUBLE_EQ(wire(Operation::all_reduce), sharded ? 0.0 : 2.0 * gradient_bytes * share);
        EXPECT_GT(rank.placement.buckets().size(), 2U);
      });
    }
  }
}

TEST(ReplicaSync, GroupsOfOneCostNothing) {
  const Transformer model{.layers = 2, .kv_heads = 2};
  const ParameterTable table = table_of(model);
  comm::run_local_ranks(1, [&](comm::World& world) {
    LayoutRank rank(world, {.model = model, .layout = {.sequence_parallel = true, .shards_optimizer = true}}, table);
    rank.reduce_all();
    rank.gather_all();
    for (const comm::Communicator* group :
         {rank.groups.world.get(), rank.groups.tensor.get(), rank.groups.replicas.get(), rank.groups.embedding.get()})
      EXPECT_EQ(calls_of(group), 0);
  });
  // Tensor parallelism alone asks nothing of it: without sequence parallelism every rank has all of its gradients.
  comm::run_local_ranks(2, [&](comm::World& world) {
    LayoutRank rank(world, {.model = model, .layout = {.tensor = 2}}, table);
    rank.reduce_all();
    rank.gather_all();
    EXPECT_EQ(calls_of(rank.groups.tensor.get()) + calls_of(rank.groups.world.get()), 0);
  });
}

TEST(ReplicaSync, PaddingStaysZero) {
  const Transformer model{.layers = 2, .hidden = 10, .vocabulary = 7};
  const ParameterTable table = table_of(model);
  comm::run_local_ranks(6, [&](comm::World& world) {
    LayoutRank rank(world, {.model = model, .layout = {.context = 2, .data = 3, .shards_optimizer = true}}, table);
    rank.store.initialise(rank.stream, 1);
    for (const Parameter& parameter : rank.store.all())
      std::fill_n(parameter.gradient.as<float>(), parameter.gradient.elements(), 1.0F);
    rank.reduce_all();
    rank.gather_all();
    int64_t padding = 0;
    for (size_t b = 0; b < rank.placement.buckets().size(); ++b) {
      for (size_t s = 0; s < rank.placement.buckets()[b].slabs.size(); ++s) {
        for_each_padding(rank.placement, rank.placement.buckets()[b].slabs[s], [&](int64_t element) {
          ASSERT_EQ(value_at(rank.store.slab(b, s).weights, element), 0.0);
          ASSERT_EQ(value_at(rank.store.slab(b, s).gradients, element), 0.0);
          ++padding;
        });
      }
    }
    EXPECT_GT(padding, 0);
  });
}

}  // namespace
}  // namespace megalith::parallel::testing
