#include <gtest/gtest.h>

#include "temp_dir.h"
#include "tiny_run.h"

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;

class Exactness : public ::testing::TestWithParam<const char*> {};

TEST_P(Exactness, SameSeedSameBitsOnOneThreadAndTwo) {
  const TempDir dir;
  train_quietly(tiny_run(GetParam(), dir / "a"));
  train_quietly(tiny_run(GetParam(), dir / "b"));
  train_quietly(tiny_run(GetParam(), dir / "c", {"trainer.cpu_threads=2"}));
  train_quietly(tiny_run(GetParam(), dir / "d", {"model.seed=4321"}));
  EXPECT_EQ(final_state(dir / "a", 20), final_state(dir / "b", 20));
  EXPECT_EQ(final_state(dir / "a", 20), final_state(dir / "c", 20));
  EXPECT_NE(final_state(dir / "a", 20), final_state(dir / "d", 20));
}

TEST_P(Exactness, StoppedAndResumedIsTheSameAsNeverStopped) {
  for (const char* precision : {"trainer.precision=32", "trainer.precision=bf16"}) {
    const TempDir dir;
    train_quietly(tiny_run(GetParam(), dir / "whole", {precision}));
    const Summary stopped =
        train_quietly(tiny_run(GetParam(), dir / "parts", {precision, "resilience.failpoints=[train.step=sigterm@7]"}));
    EXPECT_EQ(stopped.ending, Ending::stopped_early);
    EXPECT_EQ(stopped.stop_reason, "SIGTERM");
    EXPECT_EQ(stopped.steps_done, 7);
    const Summary resumed = train_quietly(tiny_run(GetParam(), dir / "parts", {precision}));
    EXPECT_EQ(resumed.ending, Ending::complete);
    EXPECT_EQ(resumed.first_step, 7);
    EXPECT_EQ(final_state(dir / "whole", 20), final_state(dir / "parts", 20));
  }
}

TEST_P(Exactness, RecomputeDoesNotChangeTheRun) {
  const TempDir dir;
  train_quietly(tiny_run(GetParam(), dir / "none"));
  train_quietly(tiny_run(GetParam(), dir / "selective", {"model.activations_checkpoint_granularity=selective"}));
  train_quietly(tiny_run(GetParam(), dir / "full", {"model.activations_checkpoint_granularity=full"}));
  EXPECT_EQ(final_state(dir / "none", 20), final_state(dir / "selective", 20));
  EXPECT_EQ(final_state(dir / "none", 20), final_state(dir / "full", 20));
}

TEST_P(Exactness, MicroBatchesDoNotChangeTheResult) {
  const TempDir dir;
  const Summary ones =
      train_quietly(tiny_run(GetParam(), dir / "ones", {"model.micro_batch_size=1", "trainer.max_steps=1"}));
  const Summary four =
      train_quietly(tiny_run(GetParam(), dir / "four", {"model.micro_batch_size=4", "trainer.max_steps=1"}));
  EXPECT_NEAR(*ones.train_loss, *four.train_loss, 1e-5 * *four.train_loss);
}

INSTANTIATE_TEST_SUITE_P(Families, Exactness, ::testing::Values(kTinyGpt, kTinyLlama),
                         [](const auto& family) { return family.index == 0 ? "Gpt" : "Llama"; });

// A run that is lengthened goes on in the order it had: its first steps are those of the longer run only if the horizon
// is kept, which the checkpoint does.
TEST(Lengthening, KeepsTheOrderOfTheFirstPart) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=10", "model.optim.sched.max_steps=20"}));
  const std::string before = final_state(dir / "run", 10);
  const Summary longer = train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=20"}));
  EXPECT_EQ(longer.first_step, 10);
  EXPECT_EQ(longer.steps_done, 20);
  checkpoint::Loaded loaded = checkpoint::Store(dir / "run/checkpoints").open(20);
  EXPECT_EQ(loaded.manifest().state.data.horizon, 40);
  EXPECT_EQ(loaded.manifest().state.consumed_samples, 80);
}

}  // namespace
}  // namespace megalith::train::testing
