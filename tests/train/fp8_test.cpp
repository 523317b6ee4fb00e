#include <gtest/gtest.h>

#include "core/file.h"
#include "expect_error.h"
#include "temp_dir.h"
#include "tiny_run.h"
#include "train/inference/inference.h"
#include "train/state/restore.h"

// Runs whose linear layers compute in fp8.

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;

std::vector<std::string> fp8(std::vector<std::string> others = {}) {
  others.insert(others.begin(),
                {"model.fp8=true", "model.fp8_hybrid=true", "model.fp8_amax_history_len=5", "model.kv_channels=16",
                 "model.ffn_hidden_size=48", "model.optim.lr=0.001", "model.optim.sched.min_lr=0.0001"});
  return others;
}

checkpoint::Loaded last_of(const std::filesystem::path& run) {
  return open_checkpoint(run);
}

std::vector<float> history_of(const std::filesystem::path& run, const std::string& linear) {
  checkpoint::Loaded loaded = last_of(run);
  const checkpoint::TensorInfo* info = loaded.find(checkpoint::TensorKind::amax_history, linear + ".weight");
  MEGALITH_CHECK(info != nullptr, "no history of {}", linear);
  std::vector<float> values(static_cast<size_t>(info->shape.elements()));
  loaded.load_tensor(checkpoint::TensorKind::amax_history, info->name, Tensor(values.data(), DType::f32, info->shape));
  return values;
}

class Fp8Runs : public ::testing::TestWithParam<const char*> {};

TEST_P(Fp8Runs, StoppedAndResumedAreTheSameAsNeverStopped) {
  for (const char* recipe : {"delayed", "tensorwise"}) {
    const TempDir dir;
    const std::string key = fmt::format("model.fp8_recipe={}", recipe);
    train_quietly(tiny_run(GetParam(), dir / "whole", fp8({key})));
    train_quietly(tiny_run(GetParam(), dir / "parts", fp8({key, "resilience.failpoints=[train.step=sigterm@7]"})));
    EXPECT_EQ(train_quietly(tiny_run(GetParam(), dir / "parts", fp8({key}))).first_step, 7);
    EXPECT_EQ(final_state(dir / "whole", 20), final_state(dir / "parts", 20));
  }
}

TEST_P(Fp8Runs, ValidationAndRecomputeLeaveNoTrace) {
  const TempDir dir;
  train_quietly(tiny_run(GetParam(), dir / "a", fp8({"trainer.val_check_interval=0"})));
  train_quietly(tiny_run(GetParam(), dir / "b",
                         fp8({"trainer.val_check_interval=3", "model.activations_checkpoint_granularity=full"})));
  EXPECT_EQ(final_state(dir / "a", 20), final_state(dir / "b", 20));
}

INSTANTIATE_TEST_SUITE_P(Families, Fp8Runs, ::testing::Values(kTinyGpt, kTinyLlama),
                         [](const auto& family) { return family.index == 0 ? "Gpt" : "Llama"; });

TEST(Fp8Run, GoesOnInAnotherPrecisionAndBack) {
  const TempDir dir;
  const auto to = [](int64_t step) { return fmt::format("trainer.max_steps={}", step); };
  const std::vector<std::string> plain = {"model.kv_channels=16", "model.ffn_hidden_size=48", "model.optim.lr=0.001",
                                          "model.optim.sched.min_lr=0.0001", to(8)};
  const Summary without = train_quietly(tiny_run(kTinyGpt, dir / "run", plain));
  const Summary with = train_quietly(tiny_run(kTinyGpt, dir / "run", fp8({to(16)})));
  EXPECT_EQ(with.first_step, 8);
  EXPECT_NEAR(*with.validation_loss, *without.validation_loss, 0.1 * *without.validation_loss);
  EXPECT_EQ(history_of(dir / "run", "layers.1.mlp.down").size(), 15u);
  std::vector<std::string> back = plain;
  back.back() = to(20);
  EXPECT_EQ(train_quietly(tiny_run(kTinyGpt, dir / "run", back)).first_step, 16);
  const checkpoint::Loaded last = last_of(dir / "run");
  EXPECT_EQ(last.find(checkpoint::TensorKind::amax_history, "layers.1.mlp.down.weight"), nullptr);
}

TEST(Fp8Run, AnotherHistoryLengthKeepsTheNewest) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run", fp8({"trainer.max_steps=8"})));
  const std::vector<float> five = history_of(dir / "run", "layers.0.mlp.up");
  train_quietly(tiny_run(kTinyGpt, dir / "run", fp8({"trainer.max_steps=9", "model.fp8_amax_history_len=3"})));
  const std::vector<float> three = history_of(dir / "run", "layers.0.mlp.up");
  for (size_t operand = 0; operand < 3; ++operand) {
    EXPECT_EQ(three[3 * operand + 1], five[5 * operand]);
    EXPECT_EQ(three[3 * operand + 2], five[5 * operand + 1]);
  }
  train_quietly(tiny_run(kTinyGpt, dir / "run", fp8({"trainer.max_steps=10", "model.fp8_amax_history_len=6"})));
  const std::vector<float> six = history_of(dir / "run", "layers.0.mlp.up");
  for (size_t operand = 0; operand < 3; ++operand) {
    EXPECT_EQ(six[6 * operand + 1], three[3 * operand]);
    EXPECT_EQ(six[6 * operand + 3], three[3 * operand + 2]);
    EXPECT_EQ(six[6 * operand + 4], 0.0F);
  }
}

TEST(Fp8Run, AnotherMarginMeasuresAnewAndSaysSo) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run", fp8({"trainer.max_steps=8"})));
  train_quietly(tiny_run(kTinyGpt, dir / "run", fp8({"trainer.max_steps=9", "model.fp8_margin=1"})));
  expect_parts(read_text(dir / "run/nemo_log_globalrank-0_localrank-0.txt"),
               {"the fp8 scales of the checkpoint are for e4m3, e5m2, margin 0, those of this run for e4m3, e5m2, "
                "margin 1: they are measured anew"});
  EXPECT_EQ(history_of(dir / "run", "layers.0.mlp.up")[2], 0.0F) << "there was one step since";
}

TEST(Fp8Run, WhatIsNotFiniteStopsOrSkipsAndIsNamed) {
  const TempDir dir;
  const std::vector<std::string> explode = fp8({"model.optim.lr=1e38", "model.optim.sched.name=constant",
                                                "model.optim.sched.warmup_steps=0", "trainer.val_check_interval=0"});
  const std::string message =
      error_of(ErrorKind::non_finite, [&] { train_quietly(tiny_run(kTinyGpt, dir / "stop", explode)); });
  expect_parts(message, {"step ", " of layers.", "is not finite"});
  std::vector<std::string> skip = explode;
  skip.push_back("resilience.on_non_finite=skip");
  const Summary summary = train_quietly(tiny_run(kTinyGpt, dir / "skip", skip));
  EXPECT_EQ(summary.steps_done, 20);
  EXPECT_GT(summary.skipped_steps, 0);
}

TEST(Fp8Run, IsEvaluatedWithoutFp8) {
  const TempDir dir;
  const Summary summary = train_quietly(tiny_run(kTinyGpt, dir / "run", fp8()));
  checkpoint::Loaded loaded = last_of(dir / "run");
  const config::Run run = config_of(loaded, {});
  EXPECT_FALSE(run.model.fp8);
  const double loss = evaluate(loaded, run, {.split = data::Split::valid, .batches = 4}).loss;
  EXPECT_NE(loss, *summary.validation_loss);
  EXPECT_NEAR(loss, *summary.validation_loss, 1e-2 * loss);
  expect_parts(error_of(ErrorKind::user,
                        [&] {
                          config_of(loaded, {"model.fp8=true", "model.fp8_hybrid=true"});
                        }),
               {"a checkpoint is evaluated in"});
}

}  // namespace
}  // namespace megalith::train::testing
