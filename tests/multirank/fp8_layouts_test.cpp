#include "same_training.h"

// fp8 multiplies rounding: where a layout changes the order of a sum, runs drift apart by more than in fp32. Where it
// changes none, not a bit may differ (docs/design.md, tolerances).

namespace megalith::train::testing {
namespace {

using model::Recompute;
using model::Scaling;
using parallel::Layout;
using parallel::PipelineSchedule;

LayoutCase fp8_case(model::ModelConfig config, const Layout& layout = {}, Scaling scaling = Scaling::delayed) {
  config.hidden = 64;
  config.head_dim = 16;
  config.ffn *= 2;
  config.precision = {.scaling = scaling, .history = 4};
  return {.config = config, .layout = layout, .steps = 8, .clip_norm = 0.0, .learning_rate = 1e-3};
}

std::vector<model::ModelConfig> models() {
  return {gpt(), llama()};
}

// Tied embeddings on two stages add up their gradient in another order than on one.
model::ModelConfig untied(model::ModelConfig config) {
  config.tied_embeddings = false;
  return config;
}

TEST(Fp8Layouts, WithoutAnotherOrderOfSumsNoBitDiffers) {
  const std::vector<Layout> layouts = {{.pipeline = 2},
                                       {.pipeline = 2, .chunks = 2},
                                       {.pipeline = 4},
                                       {.pipeline = 2, .schedule = PipelineSchedule::zero_bubble}};
  for (const model::ModelConfig& config : {untied(gpt()), llama()}) {
    for (const Scaling scaling : {Scaling::delayed, Scaling::current}) {
      const LayoutOutcome alone = train_on(fp8_case(config, {}, scaling));
      for (const Layout& layout : layouts) {
        const LayoutOutcome outcome = train_on(fp8_case(config, layout, scaling));
        EXPECT_EQ(outcome.losses, alone.losses) << to_string(layout);
        EXPECT_EQ(outcome.validations, alone.validations) << to_string(layout);
        EXPECT_EQ(outcome.weights, alone.weights) << to_string(layout);
        EXPECT_EQ(outcome.scales, alone.scales) << to_string(layout);
        for (const auto& [arena, bytes] : outcome.unused) EXPECT_EQ(bytes, 0) << arena << ", " << to_string(layout);
      }
      for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
        LayoutCase test = fp8_case(config, {.pipeline = 2, .chunks = 2}, scaling);
        test.config.recompute = recompute;
        const LayoutOutcome outcome = train_on(test);
        EXPECT_EQ(outcome.weights, alone.weights);
        EXPECT_EQ(outcome.scales, alone.scales);
      }
    }
  }
}

// At most one scale in a hundred may be another one, by one power of two.
void expect_near_scales(const LayoutOutcome& outcome, const LayoutOutcome& alone) {
  size_t others = 0;
  ASSERT_EQ(outcome.scales.size(), alone.scales.size());
  for (const auto& [operand, scale] : alone.scales) {
    const float ratio = outcome.scales.at(operand) / scale;
    EXPECT_TRUE(ratio == 1.0F || ratio == 2.0F || ratio == 0.5F) << operand << ": " << ratio;
    others += ratio == 1.0F ? 0 : 1;
  }
  EXPECT_LE(others, (alone.scales.size() + 99) / 100);
}

TEST(Fp8Layouts, OthersStayNear) {
  const std::vector<Layout> layouts = {
      {.data = 2},
      {.tensor = 2},
      {.tensor = 4, .sequence_parallel = true},
      {.context = 2},
      {.data = 4, .shards_optimizer = true},
      {.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true},
      {.tensor = 2, .pipeline = 2, .sequence_parallel = true, .schedule = PipelineSchedule::zero_bubble},
      {.chunks = 4, .data = 2, .shards_optimizer = true, .shards_weights = true},
  };
  for (const model::ModelConfig& config : models()) {
    const LayoutOutcome alone = train_on(fp8_case(config));
    for (const Layout& layout : layouts) {
      SCOPED_TRACE(to_string(layout));
      const LayoutOutcome outcome = train_on(fp8_case(config, layout));
      for (size_t step = 0; step < alone.losses.size(); ++step)
        expect_near(outcome.losses[step], alone.losses[step], 1e-3, fmt::format("loss of step {}", step));
      for (const auto& [name, values] : alone.weights) {
        if (name.ends_with("qkv.bias")) continue;
        // Biases began at zero: all of them is what Adam made of few tokens' gradients.
        EXPECT_LE(difference(outcome.weights.at(name), values), name.ends_with("bias") ? 0.1 : 3e-2) << name;
      }
      expect_near_scales(outcome, alone);
      for (const auto& [arena, bytes] : outcome.unused) EXPECT_EQ(bytes, 0) << arena;
    }
  }
}

TEST(Fp8Layouts, TwiceGivesTheSameBits) {
  const Layout layout{.tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true, .shards_optimizer = true};
  for (const Scaling scaling : {Scaling::delayed, Scaling::current}) {
    const LayoutCase test = fp8_case(gpt(), layout, scaling);
    EXPECT_TRUE(train_on(test) == train_on(test));
  }
}

// A cast to fp8 makes infinity the largest finite number.
TEST(Fp8Layouts, AnInfinityThatTheCastHidesSkipsTheStepAndIsNamed) {
  const LayoutCase test = fp8_case(gpt());
  const auto world = comm::make_lone_world(Device::cpu);
  engine::Engine engine = make_engine(engine_options(test), *world);
  engine.initialise(5);
  const auto run_step = [&](int64_t step) {
    const data::StepBatch batch = batch_of(test, step, 0);
    engine.run_step({.step = step, .weight = batch.total_weight, .learning_rate = 1e-3}, batch.micro_batches);
    return engine.result_of_step(0).update;
  };
  const auto scales = [&] {
    const Tensor& scale = engine.precision().scales().scale;
    return std::vector<float>(scale.as<float>(), scale.as<float>() + scale.elements());
  };
  EXPECT_FALSE(run_step(0).skipped);
  const std::vector<float> before = scales();
  float& planted = engine.parameters()["layers.2.attention.norm.weight"].weight.as<float>()[3];
  const float kept = std::exchange(planted, std::numeric_limits<float>::infinity());
  const engine::UpdateResult skipped = run_step(1);
  EXPECT_TRUE(skipped.skipped);
  EXPECT_EQ(skipped.first_non_finite, "the input of layers.2.attention.qkv");
  EXPECT_EQ(scales(), before);
  planted = kept;
  EXPECT_FALSE(run_step(2).skipped);
}

TEST(Fp8Layouts, StayNearFp32) {
  for (const model::ModelConfig& config : models()) {
    LayoutCase plain = fp8_case(config);
    plain.config.precision = {};
    const LayoutOutcome exact = train_on(plain);
    for (const Scaling scaling : {Scaling::delayed, Scaling::current}) {
      const LayoutOutcome outcome = train_on(fp8_case(config, {}, scaling));
      for (size_t step = 0; step < exact.losses.size(); ++step)
        expect_near(outcome.losses[step], exact.losses[step], 5e-3, fmt::format("loss of step {}", step));
    }
  }
}

}  // namespace
}  // namespace megalith::train::testing
