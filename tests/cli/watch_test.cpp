#include <gtest/gtest.h>

#include <fstream>

#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

constexpr const char* kTrain =
    "train trainer.accelerator=cpu model.micro_batch_size=2 model.global_batch_size=2 model.encoder_seq_length=16 "
    "model.num_layers=1 model.hidden_size=16 model.num_attention_heads=2 trainer.max_steps=6 model.data.data_impl=mock "
    "exp_manager.explicit_log_dir=";

TEST(Watch, AndReportShowARun) {
  const TempDir dir;
  const std::string path = dir.path().string();
  ASSERT_EQ(run_program(std::string(kTrain) + "a", path).exit_code, 0);
  ASSERT_EQ(run_program(std::string(kTrain) + "b model.optim.lr=0.01", path).exit_code, 0);
  const Outcome frame = run_program("watch a --once", path);
  EXPECT_EQ(frame.exit_code, 0) << frame.output;
  for (const char* words : {"complete", "step 6 of 6", "loss", "tokens/s"})
    EXPECT_NE(frame.output.find(words), std::string::npos) << words << "\n" << frame.output;
  EXPECT_EQ(frame.output.find('\x1b'), std::string::npos);

  Outcome report = run_program("report run a --png pictures", path);
  EXPECT_EQ(report.exit_code, 0) << report.output;
  EXPECT_NE(report.output.find("a/report.html"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(dir / "pictures/loss.png"));
  report = run_program("report run a --compare b -o both.html", path);
  EXPECT_EQ(report.exit_code, 0) << report.output;
  std::ifstream page(dir / "both.html");
  const std::string html(std::istreambuf_iterator<char>(page), {});
  EXPECT_NE(html.find("model.optim.lr"), std::string::npos);
}

TEST(Watch, AndReportSayWhatADirectoryHoldsInstead) {
  const TempDir dir;
  std::ofstream(dir / "notes.txt") << "hello";
  for (const char* verb : {"watch . --once", "report run .", "report run missing", "watch notes.txt"}) {
    const Outcome outcome = run_program(verb, dir.path().string());
    EXPECT_EQ(outcome.exit_code, 2) << verb << "\n" << outcome.output;
  }
  EXPECT_NE(run_program("watch .", dir.path().string()).output.find("notes.txt"), std::string::npos);
}

}  // namespace
}  // namespace megalith::cli::testing
