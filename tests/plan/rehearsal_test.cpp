#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "comm/local/local_world.h"
#include "comm/shadow/shadow_world.h"
#include "model/parameters.h"
#include "plan/rehearsal.h"

namespace megalith::plan {
namespace {

model::ModelConfig gpt3_175b() {
  return {.layers = 96,
          .hidden = 12288,
          .ffn = 49152,
          .heads = 96,
          .kv_heads = 96,
          .head_dim = 128,
          .vocabulary = 50257,
          .padded_vocabulary = 51200,
          .max_positions = 2048,
          .hidden_dropout = 0.1,
          .attention_dropout = 0.1,
          .compute = DType::bf16};
}

TEST(LayoutMemory, WeightsOfAllStagesAddUpToTheModel) {
  const engine::StageRequest request{
      .config = gpt3_175b(),
      .layout =
          {.tensor = 4, .pipeline = 8, .chunks = 2, .data = 8, .sequence_parallel = true, .shards_optimizer = true},
      .batch = 1,
      .length = 2048,
      .micro_batches = 256};
  int64_t weights = 0;
  for (int64_t stage = 0; stage < 8; ++stage) weights += memory_of_stage(request, stage).bytes_of("weights");
  const int64_t parameters = model::logical_parameters(request.config).elements();
  const int64_t tied_copy = int64_t{51200} * 12288;
  // bf16; what is not cut by tensor parallelism (norms, output biases, positions) is on each of the four ranks.
  EXPECT_GT(4 * weights, 2 * (parameters + tied_copy));
  EXPECT_LT(4 * weights, 2.002 * static_cast<double>(parameters + tied_copy));
}

TEST(LayoutMemory, TheFirstStageHoldsTheMostActivations) {
  const engine::StageRequest request{
      .config = gpt3_175b(),
      .layout = {.tensor = 8, .pipeline = 16, .data = 4, .sequence_parallel = true, .shards_optimizer = true},
      .batch = 1,
      .length = 2048,
      .micro_batches = 128};
  EXPECT_EQ(memory_of_worst_rank(request).stage, 0);
  EXPECT_GT(memory_of_stage(request, 0).bytes_of("activations"), memory_of_stage(request, 15).bytes_of("activations"));
}

TEST(LayoutMemory, RecomputeSavesMemory) {
  engine::StageRequest request{
      .config = gpt3_175b(), .layout = {.tensor = 8, .pipeline = 8}, .batch = 1, .length = 2048, .micro_batches = 64};
  const int64_t none = memory_of_worst_rank(request).table.total();
  request.config.recompute = model::Recompute::selective;
  const int64_t selective = memory_of_worst_rank(request).table.total();
  request.config.recompute = model::Recompute::full;
  const int64_t full = memory_of_worst_rank(request).table.total();
  EXPECT_LT(selective, none);
  EXPECT_LT(full, selective);
}

// A model small enough to be run beside its rehearsal.
engine::StageRequest small(const parallel::Layout& layout) {
  return {.config = {.layers = 4,
                     .hidden = 32,
                     .ffn = 128,
                     .heads = 4,
                     .kv_heads = 4,
                     .head_dim = 8,
                     .vocabulary = 60,
                     .padded_vocabulary = 64,
                     .max_positions = 16},
          .layout = layout,
          .batch = 1,
          .length = 16,
          .micro_batches = 4,
          .bucket_elements = 3000};
}

const std::vector<parallel::Layout> kSmallLayouts = {
    {},
    {.tensor = 2, .sequence_parallel = true},
    {.pipeline = 2, .chunks = 2},
    {.pipeline = 2, .schedule = parallel::PipelineSchedule::zero_bubble},
    {.context = 2, .data = 2, .shards_optimizer = true},
    {.chunks = 4, .data = 2, .shards_optimizer = true, .shards_weights = true},
    {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
};

void expect_equal(const engine::ArenaSizes& found, const engine::ArenaSizes& expected) {
  EXPECT_EQ(found.weights, expected.weights);
  EXPECT_EQ(found.gradients, expected.gradients);
  EXPECT_EQ(found.masters, expected.masters);
  EXPECT_EQ(found.moments, expected.moments);
  EXPECT_EQ(found.optimizer, expected.optimizer);
  EXPECT_EQ(found.activations, expected.activations);
  EXPECT_EQ(found.reduction, expected.reduction);
  EXPECT_EQ(found.scratch, expected.scratch);
  EXPECT_EQ(found.batch, expected.batch);
  EXPECT_EQ(found.deferred, expected.deferred);
}

TEST(Rehearsal, OfOnePassThroughEachChunkFindsThePeaksOfWholeSteps) {
  for (const parallel::Layout& layout : kSmallLayouts) {
    SCOPED_TRACE(to_string(layout));
    const engine::StageRequest request = small(layout);
    const engine::StagePrograms programs(request);
    for (int rank = 0; rank < layout.world(); ++rank) {
      const auto world = comm::make_shadow_world(rank, static_cast<int>(layout.world()), Device::cpu);
      engine::Engine engine({.stage = request}, *world, programs);
      const std::vector<data::MicroBatch> batch(4, example_batch(request, Documents::one_a_sample));
      engine.run_step({}, batch);
      engine.evaluate(batch, 1.0);
      expect_equal(Rehearsal(request).memory_of(rank).arenas, engine.sizes());
    }
  }
}

TEST(Rehearsal, KnowsTheMemoryOfAGpuInAnyBuild) {
  engine::StageRequest request = small({});
  request.device = Device::cuda;
  request.config.compute = DType::bf16;
  request.config.masks_documents = true;
  const RankMemory memory = memory_of_rank(request, 0);
  EXPECT_GT(memory.table.total(), int64_t{1} << 30);
  request.config.masks_documents = false;
  EXPECT_LT(memory_of_rank(request, 0).arenas.batch, memory.arenas.batch) << "document bounds take some";
}

// GEMMs: 6 FLOPs for each weight that a token meets, the head included. Attention: what a causal mask leaves, with the
// scores computed again in backward.
TEST(Rehearsal, FlopsOfAllRanksAreThoseOfTheDefinition) {
  for (const parallel::Layout& layout : kSmallLayouts) {
    SCOPED_TRACE(to_string(layout));
    const engine::StageRequest request = small(layout);
    const model::ModelConfig& c = request.config;
    double gemms = 0.0;
    double attention = 0.0;
    const Rehearsal rehearsal(request);
    for (int64_t rank = 0; rank < layout.world(); ++rank) {
      const StepWork work = rehearsal.work_of(rank);
      gemms += work.sum(ops::OpKind::product).flops;
      attention += work.sum(ops::OpKind::attention).flops;
    }
    const int64_t weights = c.layers * (c.hidden * c.qkv_width() + c.query_width() * c.hidden + 2 * c.hidden * c.ffn) +
                            c.padded_vocabulary * c.hidden;
    const int64_t samples = request.micro_batches * request.batch * layout.data;
    EXPECT_EQ(gemms, 6.0 * static_cast<double>(samples * request.length * weights));
    const int64_t seen = request.length * (request.length + 1) / 2;
    const double forward = 4.0 * static_cast<double>(samples * c.layers * c.query_width() * seen);
    EXPECT_EQ(attention, 3.5 * forward);
    const StepFlops step = flops_of_step(request);
    EXPECT_EQ(step.gemms, gemms);
    EXPECT_EQ(step.attention, attention);
  }
}

using Calls = std::map<std::pair<std::string, std::string>, int64_t>;

// One whole step of real ranks: the same peaks, operations and calls.
TEST(Rehearsal, IsARealStep) {
  for (const parallel::Layout& layout : kSmallLayouts) {
    SCOPED_TRACE(to_string(layout));
    const engine::StageRequest request = small(layout);
    comm::run_local_ranks(static_cast<int>(layout.world()), [&](comm::World& world) {
      const Rehearsal rehearsal(request);
      const engine::ArenaSizes sizes = rehearsal.memory_of(world.rank()).arenas;
      const StepWork work = rehearsal.work_of(world.rank());
      engine::Engine engine({.stage = request}, world, sizes);
      engine.initialise(1);
      const std::vector<data::MicroBatch> batch(4, example_batch(request, Documents::one_a_sample));
      Calls heard;
      {
        const ops::OpObservation observation(engine.stream(), [&](const ops::OpCall& call) {
          ++heard[{call.name, call.cost.shape}];
        });
        engine.run_step({.weight = 1.0}, batch);
        engine.result_of_step(0);
      }
      Calls rehearsed;
      for (const StepWork::Operation& operation : work.operations)
        rehearsed[{operation.name, operation.cost.shape}] = operation.calls;
      EXPECT_EQ(heard, rehearsed);
      const parallel::Groups& groups = engine.groups();
      for (const StepWork::Traffic& sum : work.traffic) {
        const std::array<const comm::Communicator*, 7> all = {
            groups.world.get(),    groups.tensor.get(),    groups.context.get(), groups.replicas.get(),
            groups.pipeline.get(), groups.embedding.get(), groups.kv_heads.get()};
        const auto group =
            std::find_if(all.begin(), all.end(), [&](const auto* one) { return one->name() == sum.group; });
        ASSERT_NE(group, all.end()) << sum.group;
        EXPECT_EQ((*group)->traffic(sum.operation).calls, sum.total.calls) << sum.group;
        EXPECT_EQ((*group)->traffic(sum.operation).bytes, sum.total.bytes) << sum.group;
      }
      engine.evaluate(batch, 1.0);
      expect_equal(engine.sizes(), sizes);
    });
  }
}

}  // namespace
}  // namespace megalith::plan
