#include <gtest/gtest.h>

#include "observe/draw/styled_line.h"
#include "run_on_terminal.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

TEST(ProgressBar, IsLiveWithSeveralRanks) {
  constexpr const char* kTrain =
      "train --nproc 2 trainer.accelerator=cpu model.micro_batch_size=2 model.global_batch_size=4 "
      "model.encoder_seq_length=16 model.num_layers=1 model.hidden_size=16 model.num_attention_heads=2 "
      "trainer.max_steps=6 model.data.data_impl=mock exp_manager.explicit_log_dir=a";
  const TempDir dir;
  const Outcome outcome = run_on_terminal(kTrain, dir.path().string());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::vector<std::string> lines = live_lines(outcome.output);
  ASSERT_GE(lines.size(), 3u) << outcome.output;
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with("[0] ")) << line;
    EXPECT_LT(observe::columns_of(line), 80);
  }
  EXPECT_NE(outcome.output.find("[0] Epoch 0: 100%|██████████| 6/6"), std::string::npos) << outcome.output;
}

TEST(BenchStep, SaysWhatShareOfThePlanItTook) {
  const Outcome outcome = run_program(
      "bench step --steps 1 trainer.accelerator=cpu model.micro_batch_size=2 model.global_batch_size=4 "
      "model.encoder_seq_length=16 model.num_layers=1 model.hidden_size=16 model.num_attention_heads=2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find(" % of the "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(" that the memory table counts)"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace megalith::cli::testing
