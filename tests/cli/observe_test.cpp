#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "observe/draw/styled_line.h"
#include "run_on_terminal.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

namespace fs = std::filesystem;
using ::megalith::testing::TempDir;

constexpr const char* kTrain =
    "train trainer.accelerator=cpu model.micro_batch_size=2 model.global_batch_size=4 model.encoder_seq_length=16 "
    "model.num_layers=1 model.hidden_size=16 model.num_attention_heads=2 trainer.max_steps=6 model.data.data_impl=mock "
    "exp_manager.explicit_log_dir=";

bool holds(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST(ProgressBar, ShowsStartLossAndSpeedInAnyWidth) {
  for (const unsigned short columns : {60, 80}) {
    const TempDir dir;
    const Outcome outcome = run_on_terminal(std::string(kTrain) + "a", dir.path().string(), {.columns = columns});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    const std::vector<std::string> lines = live_lines(outcome.output);
    ASSERT_GE(lines.size(), 3u);
    EXPECT_TRUE(holds(lines.front(), "0/6 [00:00<?, making the weights]")) << lines.front();
    EXPECT_TRUE(holds(lines.back(), "6/6") && holds(lines.back(), "loss=") && holds(lines.back(), " tokens/s"))
        << lines.back();
    for (const std::string& line : lines) {
      EXPECT_LT(observe::columns_of(line), columns);
      EXPECT_TRUE(line.ends_with("]")) << line;
    }
  }
}

TEST(Summary, IsCutBetweenWordsOnATerminal) {
  for (const unsigned short columns : {60, 80}) {
    for (const char* more : {"", " --dry-run"}) {
      const TempDir dir;
      const Outcome outcome =
          run_on_terminal(std::string(kTrain) + "a" + more, dir.path().string(), {.columns = columns});
      const std::string shown = outcome.output.substr(0, outcome.output.find("[Megalith"));
      EXPECT_TRUE(holds(shown, "  total ")) << shown;
      EXPECT_TRUE(holds(shown, "\r\n                 ")) << "nothing was too long\n" << shown;
      std::istringstream lines(shown);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(observe::columns_of(line), columns + 1) << line;
    }
  }
}

TEST(ProgressBar, TellsOfTheStartInAPipe) {
  const TempDir dir;
  const Outcome outcome = run_program(std::string(kTrain) + "a", dir.path().string());
  EXPECT_TRUE(holds(outcome.output, "0/6 [00:00<?, making the weights]\n")) << outcome.output;
  EXPECT_EQ(outcome.output.find('\r'), std::string::npos);
}

class FinishedRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    ASSERT_EQ(run_program(std::string(kTrain) + "a", path()).exit_code, 0);
  }
  static void TearDownTestSuite() { delete dir_; }
  static std::string path() { return dir_->path().string(); }

  static inline TempDir* dir_ = nullptr;
};

TEST_F(FinishedRun, IsWaitedFor) {
  const std::string train = std::string(MEGALITH_PROGRAM) + " " + kTrain + "late > log.txt";
  const Outcome frame = run_program("watch late --interval 0.05 2>&1 & sleep 0.3; " + train + "; wait", path());
  EXPECT_TRUE(frame.output.starts_with("waiting for a run in late; Ctrl-C ends this\n")) << frame.output;
  EXPECT_TRUE(holds(frame.output, "late  ")) << frame.output;
  const Outcome once = run_program("watch later --once", path());
  EXPECT_EQ(once.exit_code, 2);
  EXPECT_TRUE(holds(once.output, "later does not exist")) << once.output;
}

TEST_F(FinishedRun, EndsByControlCWhileItWaits) {
  // Behind & a shell ignores SIGINT for a program until that asks for it.
  const Outcome outcome = run_on_terminal(
      "watch later & until [ $((0x$(sed -n 's/SigCgt://p' /proc/$!/status | tr -d '\\t') & 2)) -ne 0 ]; do sleep 0.1; "
      "done; sleep 0.5; kill -INT $!; wait $!",
      path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "waiting for a run in later")) << outcome.output;
}

TEST_F(FinishedRun, HasColoursUnlessNoColorIsSet) {
  EXPECT_TRUE(holds(run_on_terminal("watch a", path()).output, "\x1b[32mcomplete\x1b[0m"));
  const Outcome plain = run_on_terminal("watch a --once", path(), {}, "NO_COLOR=1");
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_TRUE(holds(plain.output, "complete")) << plain.output;
  EXPECT_FALSE(holds(plain.output, "\x1b")) << plain.output;
}

TEST_F(FinishedRun, LeavesItsTitleOnASmallTerminal) {
  const Outcome outcome = run_on_terminal("watch a", path(), {.columns = 60, .rows = 12}, "NO_COLOR=1");
  const std::string last_frame = outcome.output.substr(outcome.output.rfind("\x1b[?1049l") + 8);
  EXPECT_TRUE(last_frame.starts_with("a  complete")) << last_frame;
  EXPECT_TRUE(holds(last_frame, "\ncheckpoint ")) << last_frame;
  EXPECT_LT(std::count(last_frame.begin(), last_frame.end(), '\n'), 12) << last_frame;
}

TEST_F(FinishedRun, TakesTheWidthOfAPipeFromColumns) {
  for (const int columns : {50, 120}) {
    const Outcome outcome = run_program("watch a", path(), "COLUMNS=" + std::to_string(columns));
    EXPECT_EQ(observe::columns_of(outcome.output.substr(0, outcome.output.find('\n'))), columns) << outcome.output;
  }
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int64_t count_of(const std::string& text, const std::string& words) {
  int64_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

TEST(TensorBoardFiles, HaveEachStepOnceAfterACrash) {
  const TempDir dir;
  const std::string train =
      std::string(kTrain) +
      "a exp_manager.resume_if_exists=true exp_manager.checkpoint_callback_params.every_n_train_steps=2 ";
  ASSERT_EQ(run_program(train + "'resilience.failpoints=[train.step=exit@6]'", dir.path().string()).exit_code, 1);
  ASSERT_EQ(run_program(train, dir.path().string()).exit_code, 0);
  std::string all;
  int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(dir / "a")) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    all += text_of(entry.path());
    ++files;
  }
  EXPECT_EQ(files, 2);
  const std::string page = text_of(dir / "a/report.html");
  const size_t incident = page.find("<h2>Incidents</h2>");
  ASSERT_NE(incident, std::string::npos);
  const std::regex to_the_second("<tr><td>\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d</td>");
  EXPECT_TRUE(std::regex_search(page.substr(incident, 1000), to_the_second)) << page.substr(incident, 1000);
  EXPECT_EQ(count_of(all, "reduced_train_loss"), 6);
  EXPECT_EQ(count_of(all, "lm loss vs samples"), 6);
}

TEST_F(FinishedRun, GoodputSaysWhatItNeeds) {
  Outcome outcome = run_program("report goodput a", path());
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(holds(outcome.output, "| Goodput Percentage    | needs --reference-step-time |")) << outcome.output;
  EXPECT_FALSE(holds(outcome.output, "0.00% |")) << outcome.output;
  outcome = run_program("report goodput a --reference-step-time 0.001", path());
  EXPECT_FALSE(holds(outcome.output, "needs --reference-step-time")) << outcome.output;
}

TEST_F(FinishedRun, ReportNamesProgramAndMachine) {
  const std::string page = text_of(*dir_ / "a/report.html");
  EXPECT_TRUE(holds(page, "<br>megalith 0.1.0")) << page.substr(page.find("</header>"), 300);
  EXPECT_TRUE(holds(page, " threads</p>")) << page.substr(page.find("</header>"), 300);
  EXPECT_FALSE(holds(page, "planned stop"));
  EXPECT_FALSE(std::regex_search(page, std::regex("e-0\\d(%| s)")));
}

TEST_F(FinishedRun, ReportComparesByTokensWhereBatchesDiffer) {
  ASSERT_EQ(run_program(std::string(kTrain) + "b model.global_batch_size=8", path()).exit_code, 0);
  ASSERT_EQ(run_program("report run a --compare b -o both.html", path()).exit_code, 0);
  const std::string page = text_of(*dir_ / "both.html");
  EXPECT_TRUE(holds(page, "Smooth loss at 384 tokens"));  // all of a; of b half
  EXPECT_FALSE(holds(page, "Smooth loss at step"));
  ASSERT_EQ(run_program("report run a --compare a -o same.html", path()).exit_code, 0);
  EXPECT_TRUE(holds(text_of(*dir_ / "same.html"), "Smooth loss at step 5"));
}

TEST_F(FinishedRun, ReportSaysWhatCannotBeReadOrWritten) {
  std::ofstream(*dir_ / "file") << "x";
  fs::create_directory(*dir_ / "loop");
  fs::create_symlink("events.jsonl", *dir_ / "loop/events.jsonl");
  const std::pair<const char*, const char*> cases[] = {
      {"report run a --png file/pictures",
       "the report cannot be made: cannot create directory file/pictures: Not a directory"},
      {"report run a -o file/page.html", "there is no folder file"},
      {"report goodput a --export file/x.json", "there is no folder file"},
      {"report run loop", "loop/events.jsonl cannot be read: Too many levels of symbolic links"},
      {"report goodput loop", "loop/events.jsonl cannot be read: Too many levels of symbolic links"},
      {"watch loop --once", "loop/events.jsonl cannot be read: Too many levels of symbolic links"}};
  for (const auto& [command, words] : cases) {
    const Outcome outcome = run_program(command, path());
    EXPECT_EQ(outcome.exit_code, 2) << command;
    EXPECT_TRUE(holds(outcome.output, words)) << outcome.output;
    EXPECT_FALSE(holds(outcome.output, "filesystem error")) << outcome.output;
  }
}

}  // namespace
}  // namespace megalith::cli::testing
