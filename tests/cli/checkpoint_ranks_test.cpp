// What ranks that save together must agree about before they begin.
#include <gtest/gtest.h>
#include <sys/file.h>

#include <fstream>

#include "core/file.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr const char* kTrain =
    "train --nproc 2 trainer.accelerator=cpu trainer.cpu_threads=1 model.micro_batch_size=1 model.global_batch_size=2 "
    "model.encoder_seq_length=16 model.num_layers=1 model.hidden_size=16 model.num_attention_heads=2 "
    "model.data.data_impl=mock exp_manager.resume_if_exists=true ";

// Rank 0 alone sees what is wrong with the checkpoints of a run, and every rank ends for that reason.
TEST(CheckpointRanks, WhatRankZeroRefusesEndsTheRunWithItsReason) {
  if (kSanitized) GTEST_SKIP() << "starts ranks";
  const TempDir dir;
  const std::string path = dir.path().string();
  const std::string train = std::string(kTrain) + "exp_manager.explicit_log_dir=run trainer.max_steps=";
  Outcome outcome = run_program(train + "2", path);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  std::filesystem::remove(dir / "run/checkpoints/step-00000002/manifest.json");
  outcome = run_program(train + "4", path);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("step-00000002: its manifest.json is gone"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("is gone;"), std::string::npos) << outcome.output;
}

TEST(CheckpointRanks, ADirectoryThatCannotBeUsedEndsTheRunBeforeTheFirstStep) {
  if (kSanitized) GTEST_SKIP() << "starts ranks";
  const TempDir dir;
  std::ofstream(dir / "file") << "not a directory";
  std::filesystem::create_directory(dir / "shared");
  const File held = File::open_for_appending(dir / "shared/.megalith.lock");
  ASSERT_EQ(::flock(held.descriptor(), LOCK_EX), 0);
  const std::string train = std::string(kTrain) +
                            "exp_manager.explicit_log_dir=run trainer.max_steps=2 "
                            "exp_manager.checkpoint_callback_params.dirpath=";
  // The first no rank can use; of the second only rank 0 knows that another run has it.
  for (const auto& [where, reason] :
       {std::pair("file/checkpoints", "checkpoints cannot be written to file/checkpoints"),
        {"shared", "another run that is training now saves its checkpoints to shared"}}) {
    const Outcome outcome = run_program(train + where, dir.path().string());
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
  }
}

// The clock of rank 0 decides.
TEST(CheckpointRanks, SavesByTimeAreMadeByAllRanksTogether) {
  if (kSanitized) GTEST_SKIP() << "starts ranks";
  const TempDir dir;
  const Outcome outcome = run_program(std::string(kTrain) +
                                          "exp_manager.explicit_log_dir=run trainer.max_steps=30 "
                                          "exp_manager.checkpoint_callback_params.train_time_interval=0.02 "
                                          "exp_manager.checkpoint_callback_params.async_save=false",
                                      dir.path().string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(outcome.output.find("failed"), std::string::npos) << outcome.output;
  EXPECT_EQ(run_program("checkpoint verify run", dir.path().string()).exit_code, 0);
}

}  // namespace
}  // namespace megalith::cli::testing
