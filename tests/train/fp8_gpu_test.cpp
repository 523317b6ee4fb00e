#include <limits>

#include "first_step.h"
#include "model/parameters.h"
#include "model/tiny_model.h"
#include "temp_dir.h"
#include "tiny_run.h"

// Steps and runs on a GPU whose linear layers compute in fp8. Every name has Gpu in it: scripts/check-gpu asks for
// that.

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;
using model::Scaling;
using model::testing::Golden;

constexpr Scaling kScalings[] = {Scaling::delayed, Scaling::current};

bool is_matrix(const model::ModelConfig& config, const std::string& name) {
  const parallel::ParameterTable table = model::logical_parameters(config);
  return table.specs()[table.index_of(name)].shape.rank() == 2;
}

model::ModelConfig in_fp8(model::ModelConfig config, Scaling scaling) {
  config.precision = {.scaling = scaling, .history = 4};
  return config;
}

// Of each matrix, in relative L2; and the loss.
void expect_near(const model::ModelConfig& config, const FirstStep& actual, const FirstStep& expected,
                 double tolerance) {
  EXPECT_NEAR(actual.loss, expected.loss, 5e-3 * expected.loss);
  for (const auto& [name, gradient] : expected.gradients) {
    if (!is_matrix(config, name)) continue;
    EXPECT_LT(relative_error(actual.gradients.at(name), gradient), tolerance) << name;
  }
}

// Matrices of 16 channels average little: docs/precision.md says how far the exact numbers of the formats lead astray.
TEST(Fp8Gpu, GoldenModelsAgree) {
  MEGALITH_GPU_OR_SKIP();
  struct Model {
    const char* file;
    model::ModelConfig config;
    double tolerance;
  };
  for (const Model& one : {Model{"gpt.safetensors", model::testing::tiny_gpt(), 0.2},
                           Model{"llama.safetensors", model::testing::tiny_llama(), 0.4}}) {
    Golden golden(one.file);
    const WeightsOf from = weights_of(golden, one.config, DType::bf16);
    const data::MicroBatch batch = first_batch(golden);
    const FirstStep exact = first_step(one.config, Device::cpu, DType::f64, from, batch);
    for (const Scaling scaling : kScalings) {
      SCOPED_TRACE(fmt::format("{}, scaling {}", one.file, static_cast<int>(scaling)));
      const model::ModelConfig config = in_fp8(one.config, scaling);
      expect_near(config, first_step(config, Device::cuda, DType::bf16, from, batch), exact, one.tolerance);
    }
  }
}

data::MicroBatch made_up_batch(const model::ModelConfig& config, int64_t length) {
  data::MicroBatch batch{.batch = 2, .length = length};
  batch.sample_ids = {0, 1};
  for (int64_t i = 0; i < batch.batch * length; ++i) {
    batch.inputs.push_back(static_cast<int32_t>((i * i + 3 * i) % config.vocabulary));
    batch.targets.push_back(static_cast<int32_t>((i * i + 5 * i + 4) % config.vocabulary));
  }
  batch.weights.assign(batch.inputs.size(), 1.0F);
  return batch;
}

model::ModelConfig wide(model::ModelConfig config) {
  config.hidden = 128;
  config.ffn = 384;
  config.head_dim = 32;
  config.max_positions = 64;
  config.init_std = 0.05;
  return config;
}

TEST(Fp8Gpu, WideModelsAgreeWithFp32OnTheCpu) {
  MEGALITH_GPU_OR_SKIP();
  for (const model::ModelConfig& plain : {wide(model::testing::tiny_gpt()), wide(model::testing::tiny_llama())}) {
    const data::MicroBatch batch = made_up_batch(plain, 64);
    const FirstStep exact = first_step(plain, Device::cpu, DType::f32, {}, batch);
    for (const Scaling scaling : kScalings) {
      SCOPED_TRACE(static_cast<int>(scaling));
      const model::ModelConfig config = in_fp8(plain, scaling);
      expect_near(config, first_step(config, Device::cuda, DType::bf16, {}, batch), exact, 0.15);
    }
  }
}

TEST(Fp8Gpu, AnInfinityInAnActivationSkipsTheStepAndIsNamed) {
  MEGALITH_GPU_OR_SKIP();
  model::ModelConfig config = in_fp8(wide(model::testing::tiny_gpt()), Scaling::delayed);
  config.compute = DType::bf16;
  const data::MicroBatch batch = made_up_batch(config, 64);
  const engine::StageRequest request{
      .config = config, .batch = batch.batch, .length = batch.length, .device = Device::cuda};
  const auto world = comm::make_lone_world(Device::cuda);
  engine::Engine engine({.stage = request}, *world, plan::memory_of_rank(request, 0).arenas);
  engine.initialise(7);
  engine.tune(batch);
  const auto step = [&](int64_t number) {
    engine.run_step({.step = number, .weight = 128.0, .learning_rate = 1e-3}, {batch});
    return engine.result_of_step(0);
  };
  const engine::StepResult healthy = step(0);
  EXPECT_FALSE(healthy.update.skipped);
  EXPECT_EQ(healthy.update.first_non_finite, "");
  const Tensor& scale = engine.precision().scales().scale;
  const std::vector<double> scales = download(engine, scale);

  const Tensor weight = engine.parameters()["layers.1.mlp.norm.weight"].weight;
  std::vector<float> values(static_cast<size_t>(weight.elements()), 1.0F);
  values[3] = std::numeric_limits<float>::infinity();
  upload(engine, values, weight);
  const engine::StepResult broken = step(1);
  EXPECT_TRUE(broken.update.skipped);
  EXPECT_EQ(broken.update.first_non_finite, "the input of layers.1.mlp.up");
  EXPECT_EQ(download(engine, scale), scales) << "a skipped step leaves no trace in the scales";
}

std::vector<std::string> fp8(const std::string& recipe, std::vector<std::string> others = {}) {
  others.insert(others.begin(),
                {"model.fp8=true", "model.fp8_hybrid=true", "model.fp8_amax_history_len=5",
                 "model.fp8_recipe=" + recipe, "model.kv_channels=16", "model.ffn_hidden_size=48",
                 "model.optim.lr=0.001", "model.optim.sched.min_lr=0.0001", "trainer.deterministic=true"});
  return others;
}

class Fp8GpuRun : public ::testing::TestWithParam<const char*> {
 protected:
  Summary train_on_gpu(const std::filesystem::path& directory, std::vector<std::string> overrides) {
    // Runs share their tuned choices: other algorithms round otherwise.
    overrides.insert(overrides.begin(), {"trainer.accelerator=gpu", "trainer.precision=bf16",
                                         "trainer.plan_cache=" + (dir_ / "plans.json").string()});
    return train_quietly(tiny_run(GetParam(), directory, std::move(overrides)));
  }

  TempDir dir_;
};

TEST_P(Fp8GpuRun, SameSeedSameBits) {
  MEGALITH_GPU_OR_SKIP();
  for (const char* recipe : {"delayed", "tensorwise"}) {
    const std::filesystem::path of = dir_ / recipe;
    train_on_gpu(of / "a", fp8(recipe));
    train_on_gpu(of / "b", fp8(recipe));
    EXPECT_EQ(final_state(of / "a", 20), final_state(of / "b", 20)) << recipe;
  }
}

TEST_P(Fp8GpuRun, StoppedAndResumedIsTheSameAsNeverStopped) {
  MEGALITH_GPU_OR_SKIP();
  for (const char* recipe : {"delayed", "tensorwise"}) {
    const std::filesystem::path of = dir_ / recipe;
    train_on_gpu(of / "whole", fp8(recipe));
    const Summary stopped = train_on_gpu(of / "parts", fp8(recipe, {"resilience.failpoints=[train.step=sigterm@7]"}));
    EXPECT_EQ(stopped.steps_done, 7);
    train_on_gpu(of / "parts", fp8(recipe));
    EXPECT_EQ(final_state(of / "whole", 20), final_state(of / "parts", 20)) << recipe;
  }
}

TEST_P(Fp8GpuRun, RecomputeAndWeightsMadeInBackwardChangeNoBit) {
  MEGALITH_GPU_OR_SKIP();
  train_on_gpu(dir_ / "kept", fp8("delayed"));
  const auto kept = final_state(dir_ / "kept", 20);
  for (const char* how :
       {"model.activations_checkpoint_granularity=selective", "model.activations_checkpoint_granularity=full",
        "model.fp8_weight_copies=1", "model.fp8_weight_copies=0"}) {
    train_on_gpu(dir_ / how, fp8("delayed", {how}));
    EXPECT_EQ(final_state(dir_ / how, 20), kept) << how;
  }
}

TEST_P(Fp8GpuRun, FollowsTheCpuWhichGoesOnWithItsCheckpoint) {
  MEGALITH_GPU_OR_SKIP();
  const Summary on_gpu = train_on_gpu(dir_ / "gpu", fp8("delayed", {"trainer.max_steps=10"}));
  const Summary on_cpu = train_quietly(tiny_run(GetParam(), dir_ / "cpu", fp8("delayed", {"trainer.max_steps=10"})));
  EXPECT_NEAR(*on_gpu.train_loss, *on_cpu.train_loss, 2e-2 * *on_cpu.train_loss);
  const Summary resumed = train_quietly(
      tiny_run(GetParam(), dir_ / "gpu", fp8("delayed", {"trainer.accelerator=cpu", "trainer.precision=bf16"})));
  EXPECT_EQ(resumed.first_step, 10);
  EXPECT_EQ(resumed.steps_done, 20);
}

INSTANTIATE_TEST_SUITE_P(Families, Fp8GpuRun, ::testing::Values(kTinyGpt, kTinyLlama),
                         [](const auto& family) { return family.index == 0 ? "Gpt" : "Llama"; });

}  // namespace
}  // namespace megalith::train::testing
