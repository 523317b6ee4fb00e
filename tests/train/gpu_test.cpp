#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "expect_error.h"
#include "first_step.h"
#include "model/tiny_model.h"
#include "temp_dir.h"
#include "tiny_run.h"

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;
using model::testing::Golden;

struct GoldenModel {
  const char* file;
  model::ModelConfig config;
};

std::vector<GoldenModel> golden_models() {
  return {{"gpt.safetensors", model::testing::tiny_gpt()}, {"llama.safetensors", model::testing::tiny_llama()}};
}

// Against the CPU in fp64, which Golden.* holds to PyTorch; from the same weights, so that what is compared is how a
// step is computed. Tolerances of docs/design.md, section 6.
void expect_agreement(Device device, DType compute, double loss_tolerance, double gradient_tolerance) {
  for (const GoldenModel& one : golden_models()) {
    Golden golden(one.file);
    const DType weights = compute == DType::bf16 ? DType::bf16 : DType::f32;
    const WeightsOf from = weights_of(golden, one.config, weights);
    const data::MicroBatch batch = first_batch(golden);
    const FirstStep expected = first_step(one.config, Device::cpu, DType::f64, from, batch);
    const FirstStep actual = first_step(one.config, device, compute, from, batch);
    EXPECT_NEAR(actual.loss, expected.loss, loss_tolerance * expected.loss) << one.file;
    std::vector<double> all_actual;
    std::vector<double> all_expected;
    for (const auto& [name, gradient] : expected.gradients) {
      const std::vector<double>& found = actual.gradients.at(name);
      // Vectors of 16 channels average little: the smallest of them strays a little more than the whole.
      EXPECT_LT(relative_error(found, gradient), 1.5 * gradient_tolerance) << one.file << " " << name;
      all_actual.insert(all_actual.end(), found.begin(), found.end());
      all_expected.insert(all_expected.end(), gradient.begin(), gradient.end());
    }
    EXPECT_LT(relative_error(all_actual, all_expected), gradient_tolerance) << one.file;
    // PyTorch's own loss, from weights that were not rounded.
    const double golden_loss = golden.floats("loss", {1})[0];
    EXPECT_NEAR(actual.loss, golden_loss, 5e-3 * golden_loss) << one.file;
  }
}

TEST(Bf16, OnTheCpuIsCloseToFp64) {
  expect_agreement(Device::cpu, DType::bf16, 5e-3, 2e-2);
}

TEST(Gpu, GoldenModelsAgreeInFp32) {
  MEGALITH_GPU_OR_SKIP();
  expect_agreement(Device::cuda, DType::f32, 1e-5, 1e-5);
}

TEST(Gpu, GoldenModelsAgreeInBf16) {
  MEGALITH_GPU_OR_SKIP();
  expect_agreement(Device::cuda, DType::bf16, 5e-3, 2e-2);
}

// Two samples cut into documents of the given length.
data::MicroBatch batch_of_documents(int64_t length, int64_t document, int64_t vocabulary) {
  data::MicroBatch batch{.batch = 2, .length = length};
  for (int64_t i = 0; i < batch.batch * length; ++i) {
    batch.inputs.push_back(static_cast<int32_t>((i * i + 3 * i) % vocabulary));
    batch.targets.push_back(static_cast<int32_t>((i * i + 5 * i + 4) % vocabulary));
    batch.document_starts.push_back(static_cast<int32_t>(i % length / document * document));
  }
  batch.sample_ids = {0, 1};
  batch.weights.assign(batch.inputs.size(), 1.0F);
  return batch;
}

// Few documents go through cuDNN, many through our own kernel; in a step that has both, each its own recorded work.
TEST(Gpu, DocumentsAgreeWithTheCpuHoweverMany) {
  MEGALITH_GPU_OR_SKIP();
  constexpr int64_t kDocumentsLength = 512;
  model::ModelConfig config = model::testing::tiny_gpt();
  config.hidden = 64;
  config.heads = config.kv_heads = 2;
  config.head_dim = 32;
  config.max_positions = kDocumentsLength;
  config.masks_documents = true;
  const data::MicroBatch few = batch_of_documents(kDocumentsLength, 300, config.vocabulary);
  const data::MicroBatch many = batch_of_documents(kDocumentsLength, 11, config.vocabulary);
  const auto gradients_of = [&](Device device, DType compute, int steps) {
    config.compute = compute;
    const engine::StageRequest request{
        .config = config, .batch = 2, .length = kDocumentsLength, .micro_batches = 2, .device = device};
    const auto world = comm::make_lone_world(device);
    engine::Engine engine({.stage = request, .deterministic = false}, *world, plan::memory_of_rank(request, 0).arenas);
    engine.initialise(7);
    engine.tune(few);
    std::vector<double> gradients;
    for (int step = 0; step < steps; ++step) {
      const std::vector<data::MicroBatch> batches = step % 2 == 0 ? std::vector{few, many} : std::vector{many, few};
      engine.run_step({.step = step, .weight = 1e3}, batches);
      gradients.clear();
      for (const parallel::Parameter& parameter : engine.parameters().all()) {
        if (!parameter.spec->name.ends_with("weight")) continue;
        const std::vector<double> one = download(engine, parameter.gradient);
        gradients.insert(gradients.end(), one.begin(), one.end());
      }
    }
    return gradients;
  };
  const std::vector<double> expected = gradients_of(Device::cpu, DType::f32, 1);
  for (const int steps : {1, 2, 4}) {
    EXPECT_LT(relative_error(gradients_of(Device::cuda, DType::bf16, steps), expected), 2e-2) << steps << " steps";
  }
}

class GpuRun : public ::testing::TestWithParam<const char*> {
 protected:
  Summary train_on_gpu(const std::filesystem::path& directory, std::vector<std::string> overrides) {
    // Runs share their tuned choices: other algorithms round otherwise.
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

// On both sides of cuDNN's tiles of queries.
TEST_P(GpuRun, FollowsTheCpuAtAnyLength) {
  MEGALITH_GPU_OR_SKIP();
  for (const int length : {40, 64, 128, 192, 320}) {
    SCOPED_TRACE(fmt::format("{} tokens", length));
    const std::vector<std::string> overrides{fmt::format("model.encoder_seq_length={}", length),
                                             "model.hidden_size=320",
                                             "model.num_attention_heads=4",
                                             "model.hidden_dropout=0",
                                             "model.attention_dropout=0",
                                             "model.data.data_impl=mock",
                                             "model.data.data_prefix=[]",
                                             "trainer.max_steps=3",
                                             "model.optim.lr=0.001"};
    const Summary on_gpu = train_on_gpu(dir_ / fmt::format("gpu{}", length), overrides);
    const Summary on_cpu = train_quietly(tiny_run(GetParam(), dir_ / fmt::format("cpu{}", length), overrides));
    EXPECT_NEAR(*on_gpu.train_loss, *on_cpu.train_loss, 1e-2 * *on_cpu.train_loss);
  }
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
  expect_error(ErrorKind::user, {"trainer.accelerator=cpu"},
               [&] { train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.accelerator=gpu"})); });
}

}  // namespace
}  // namespace megalith::train::testing
