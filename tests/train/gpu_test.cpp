#include <gtest/gtest.h>

#include <cmath>

#include "core/device.h"
#include "model/golden_model.h"
#include "model/tiny_model.h"
#include "ops/elementwise.h"
#include "temp_dir.h"
#include "tiny_run.h"
#include "train/engine.h"

#define MEGALITH_GPU_OR_SKIP() \
  if (find_accelerators().empty()) GTEST_SKIP() << "skipped: there is no GPU that this build can use"

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;
using model::testing::Golden;

std::vector<float> download(Engine& engine, const Tensor& tensor, size_t count) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  copy(engine.stream(), tensor, Tensor(values.data(), DType::f32, tensor.shape));
  engine.stream().wait();
  values.resize(count);
  return values;
}

void upload(Engine& engine, std::vector<float> values, const Tensor& to) {
  values.resize(static_cast<size_t>(to.elements()));
  Arena staging("staging", Device::cuda, Arena::footprint(DType::f32, to.elements()));
  const Tensor wide = staging.allocate("values", DType::f32, to.shape);
  copy(engine.stream(), Tensor(values.data(), DType::f32, to.shape), wide);
  ops::cast(engine.stream(), {.x = wide, .y = to});
  engine.stream().wait();
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  double difference = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

data::MicroBatch first_batch(Golden& golden) {
  const std::vector<int32_t> tokens = golden.tokens();
  data::MicroBatch batch{.batch = model::testing::kBatch, .length = model::testing::kLength};
  for (int64_t b = 0; b < batch.batch; ++b) {
    const auto* sample = tokens.data() + b * (batch.length + 1);
    batch.inputs.insert(batch.inputs.end(), sample, sample + batch.length);
    batch.targets.insert(batch.targets.end(), sample + 1, sample + 1 + batch.length);
    batch.sample_ids.push_back(b);
  }
  batch.weights.assign(batch.inputs.size(), 1.0F);
  return batch;
}

// Loss and every gradient of the first step, within the tolerances of DESIGN.md 6.
void compare_with_golden(const std::string& file, model::ModelConfig config, DType compute, double loss_tolerance,
                         double gradient_tolerance) {
  Golden golden(file);
  config.compute = compute;
  Engine engine(
      {.model = config, .device = Device::cuda, .batch = model::testing::kBatch, .length = model::testing::kLength});
  for (const parallel::Parameter& parameter : engine.parameters().all()) {
    upload(engine, golden.floats("weights/" + parameter.spec->name, model::testing::unpadded(config, *parameter.spec)),
           parameter.weight);
  }
  const data::MicroBatch batch = first_batch(golden);
  engine.make_plans(batch);
  engine.begin_step(0, 1.0 / static_cast<double>(batch.inputs.size()));
  engine.forward(batch);
  engine.backward();
  for (const parallel::Parameter& parameter : engine.parameters().all()) {
    const Shape shape = model::testing::unpadded(config, *parameter.spec);
    std::vector<float> expected = golden.floats("gradients/" + parameter.spec->name, shape);
    std::vector<float> actual = download(engine, parameter.gradient, expected.size());
    if (parameter.spec->name.ends_with("qkv.bias")) {
      model::testing::zero_k_bias(config, actual);
      model::testing::zero_k_bias(config, expected);
    }
    EXPECT_LT(relative_error(actual, expected), gradient_tolerance) << parameter.spec->name;
  }
  engine.end_step(0.0, 1);
  const double expected_loss = golden.floats("loss", {1})[0];
  EXPECT_NEAR(engine.result_of_step(0).loss, expected_loss, loss_tolerance * expected_loss);
}

TEST(Gpu, GoldenModelsAgreeInFp32) {
  MEGALITH_GPU_OR_SKIP();
  compare_with_golden("gpt.safetensors", model::testing::tiny_gpt(), DType::f32, 1e-5, 1e-4);
  compare_with_golden("llama.safetensors", model::testing::tiny_llama(), DType::f32, 1e-5, 1e-4);
}

TEST(Gpu, GoldenModelsAgreeInBf16) {
  MEGALITH_GPU_OR_SKIP();
  compare_with_golden("gpt.safetensors", model::testing::tiny_gpt(), DType::bf16, 5e-3, 2e-2);
  compare_with_golden("llama.safetensors", model::testing::tiny_llama(), DType::bf16, 5e-3, 2e-2);
}

class GpuRun : public ::testing::TestWithParam<const char*> {
 protected:
  Summary train_on_gpu(const std::filesystem::path& directory, std::vector<std::string> overrides) {
    // Runs share their plans: other algorithms round otherwise.
    overrides.insert(overrides.begin(), {"trainer.accelerator=gpu", "trainer.precision=bf16",
                                         "trainer.plan_cache=" + (dir_ / "plans.json").string()});
    return train_quietly(tiny_run(GetParam(), directory, std::move(overrides)));
  }

  TempDir dir_;
};

TEST_P(GpuRun, SameSeedSameBitsWhereAskedFor) {
  MEGALITH_GPU_OR_SKIP();
  train_on_gpu(dir_ / "a", {"trainer.deterministic=true"});
  train_on_gpu(dir_ / "b", {"trainer.deterministic=true"});
  EXPECT_EQ(final_state(dir_ / "a", 20), final_state(dir_ / "b", 20));
}

TEST_P(GpuRun, StoppedAndResumedIsTheSameAsNeverStopped) {
  MEGALITH_GPU_OR_SKIP();
  train_on_gpu(dir_ / "whole", {"trainer.deterministic=true"});
  const Summary stopped =
      train_on_gpu(dir_ / "parts", {"trainer.deterministic=true", "resilience.failpoints=[train.step=sigterm@7]"});
  EXPECT_EQ(stopped.ending, Ending::stopped_early);
  EXPECT_EQ(stopped.steps_done, 7);
  train_on_gpu(dir_ / "parts", {"trainer.deterministic=true"});
  EXPECT_EQ(final_state(dir_ / "whole", 20), final_state(dir_ / "parts", 20));
}

TEST_P(GpuRun, FollowsTheCpu) {
  MEGALITH_GPU_OR_SKIP();
  const Summary on_gpu = train_on_gpu(dir_ / "gpu", {});
  const Summary on_cpu = train_quietly(tiny_run(GetParam(), dir_ / "cpu"));
  EXPECT_NEAR(*on_gpu.train_loss, *on_cpu.train_loss, 1e-2 * *on_cpu.train_loss);
  const Summary recomputing = train_on_gpu(dir_ / "full", {"model.activations_checkpoint_granularity=full"});
  EXPECT_NEAR(*recomputing.train_loss, *on_gpu.train_loss, 1e-2 * *on_gpu.train_loss);
  const Summary one_by_one = train_on_gpu(dir_ / "ones", {"model.micro_batch_size=1"});
  EXPECT_NEAR(*one_by_one.train_loss, *on_gpu.train_loss, 1e-2 * *on_gpu.train_loss);
}

TEST_P(GpuRun, SavesWhatTheCpuCanGoOnWith) {
  MEGALITH_GPU_OR_SKIP();
  train_on_gpu(dir_ / "run", {"trainer.max_steps=10"});
  const Summary resumed =
      train_quietly(tiny_run(GetParam(), dir_ / "run", {"trainer.accelerator=cpu", "trainer.precision=bf16"}));
  EXPECT_EQ(resumed.first_step, 10);
  EXPECT_EQ(resumed.steps_done, 20);
}

INSTANTIATE_TEST_SUITE_P(Families, GpuRun, ::testing::Values(kTinyGpt, kTinyLlama),
                         [](const auto& family) { return family.index == 0 ? "Gpt" : "Llama"; });

TEST(Gpu, IsAskedForInVain) {
  if (!find_accelerators().empty()) GTEST_SKIP() << "skipped: there is a GPU";
  const TempDir dir;
  try {
    train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.accelerator=gpu"}));
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    EXPECT_NE(std::string(error.what()).find("trainer.accelerator=cpu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace megalith::train::testing
