#include <gtest/gtest.h>

#include <cmath>

#include "comm/emulated/emulated_world.h"
#include "comm/shadow/shadow_world.h"
#include "layout_run.h"

// One rank of a layout without the others, on an emulated wire.

namespace megalith::train::testing {
namespace {

using parallel::Layout;
using parallel::PipelineSchedule;

model::ModelConfig gpt() {
  return {.layers = 4,
          .hidden = 64,
          .ffn = 128,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .vocabulary = 250,
          .padded_vocabulary = 256,
          .max_positions = 32,
          .hidden_dropout = 0.1};
}

comm::Wire wire_of_pairs() {
  return {.name = "pairs",
          .ranks_per_machine = 2,
          .links = {comm::Link{.bytes_per_second = 300e9, .call_seconds = 10e-6},
                    comm::Link{.bytes_per_second = 40e9, .call_seconds = 15e-6, .hop_seconds = 5e-6}}};
}

engine::StepResult run_alone(const LayoutCase& test, comm::World& world) {
  engine::Engine engine = make_engine(engine_options(test), world);
  engine.initialise(5);
  engine::StepResult result;
  for (int64_t step = 0; step < 3; ++step) {
    const data::StepBatch batch = batch_of(test, step, engine.place().dp);
    engine.run_step({.step = step, .weight = batch.total_weight, .learning_rate = test.learning_rate},
                    batch.micro_batches);
    result = engine.result_of_step(0);
    EXPECT_FALSE(result.update.skipped) << result.update.first_non_finite;
    EXPECT_TRUE(std::isfinite(result.update.gradient_norm));
    EXPECT_GT(result.update.gradient_norm, 0.0);
    EXPECT_TRUE(std::isfinite(result.loss));
  }
  EXPECT_EQ(engine.talk().broadcast("what this rank says"), "what this rank says");
  EXPECT_FALSE(engine.talk().any_rank(false));
  EXPECT_TRUE(engine.talk().any_rank(true));
  return result;
}

TEST(EmulatedRanks, EveryRankOfALayoutTrainsAlone) {
  const std::vector<Layout> layouts = {{.tensor = 2},
                                       {.tensor = 4, .sequence_parallel = true},
                                       {.pipeline = 2},
                                       {.pipeline = 2, .chunks = 2},
                                       {.pipeline = 2, .schedule = PipelineSchedule::zero_bubble},
                                       {.context = 2, .data = 2, .shards_optimizer = true},
                                       {.chunks = 4, .data = 2, .shards_optimizer = true, .shards_weights = true},
                                       {.tensor = 2,
                                        .pipeline = 2,
                                        .chunks = 2,
                                        .context = 2,
                                        .data = 2,
                                        .sequence_parallel = true,
                                        .shards_optimizer = true}};
  for (const Layout& layout : layouts) {
    const LayoutCase test{.config = gpt(), .layout = layout};
    for (int rank = 0; rank < layout.world(); ++rank) {
      SCOPED_TRACE(fmt::format("rank {} of {}", rank, to_string(layout)));
      comm::WireClock clock;
      comm::EmulatedWorld world(rank, static_cast<int>(layout.world()), {.wire = wire_of_pairs()}, clock);
      run_alone(test, world);
      EXPECT_GT(clock.now(), 0.0);
    }
  }
}

TEST(EmulatedRanks, InFp8Too) {
  for (const model::Scaling scaling : {model::Scaling::delayed, model::Scaling::current}) {
    LayoutCase test{.config = gpt(),
                    .layout = {.tensor = 2, .pipeline = 2, .sequence_parallel = true},
                    .clip_norm = 0.0,
                    .learning_rate = 1e-3};
    test.config.precision = {.scaling = scaling, .history = 4};
    for (int rank = 0; rank < 4; ++rank) {
      comm::WireClock clock;
      comm::EmulatedWorld world(rank, 4, {.wire = wire_of_pairs()}, clock);
      run_alone(test, world);
    }
  }
}

// What a rank adds up over the others is what they would add where they do as it does.
TEST(EmulatedRanks, SumsCountEveryRank) {
  const LayoutCase test{.config = gpt(), .layout = {.data = 2}};
  comm::WireClock clock;
  comm::EmulatedWorld world(0, 2, {.wire = wire_of_pairs()}, clock);
  const engine::StepResult result = run_alone(test, world);
  EXPECT_GT(result.loss, 4.0);  // ln 256 is 5.5: neither doubled nor halved
  EXPECT_LT(result.loss, 7.0);
}

// Each call of the tensor group is waited for at once: nothing hides it.
TEST(EmulatedRanks, WaitsAsLongAsTheWireSays) {
  const Layout layout{.tensor = 4, .sequence_parallel = true};
  const LayoutCase test{.config = gpt(), .layout = layout};
  const engine::EngineOptions options = engine_options(test);
  const comm::Wire wire = wire_of_pairs();
  double expected = 0.0;
  const auto listener = [&](const comm::ShadowCall& call) {
    // Rank 0 shares key and value heads with rank 1.
    comm::Group group{.name = call.group};
    for (int rank = 0; rank < call.members; ++rank) group.ranks.push_back(rank);
    const comm::Call asked{.operation = call.operation, .input = Tensor(nullptr, DType::e4m3, {call.bytes})};
    expected += seconds_alone(wire, cost_of(wire, group, asked));
  };
  const data::StepBatch batch = batch_of(test, 0, 0);
  {
    const auto shadow = comm::make_shadow_world(0, 4, Device::cpu, listener);
    engine::Engine engine(options, *shadow, engine::StagePrograms(options.stage));
    engine.run_step({}, batch.micro_batches);
  }
  comm::WireClock clock;
  comm::EmulatedWorld world(0, 4, {.wire = wire}, clock);
  engine::Engine engine = make_engine(options, world);
  engine.initialise(5);
  const double before = clock.now();
  engine.run_step({.weight = batch.total_weight, .learning_rate = 1e-3}, batch.micro_batches);
  EXPECT_GT(expected, 0.0);
  EXPECT_NEAR(clock.now() - before, expected, 0.02 * expected);
}

}  // namespace
}  // namespace megalith::train::testing
