#include "observe/watch/watch_frame.h"

#include <gtest/gtest.h>

#include <cmath>

#include "observe/draw/sparkline.h"
#include "observe/draw/styled_line.h"

namespace megalith::observe {
namespace {

constexpr double kNow = 1.8e9;

// `steps` of 1000, one a second until now.
RunHistory history_of(int64_t steps) {
  RunHistory history;
  history.settings["trainer.max_steps"] = "1000";
  history.starts = {{.time = kNow - 2000, .step = 0}, {.time = kNow - 1000, .step = 0}};
  history.nodes = {"node-7"};
  for (int64_t step = 0; step < steps; ++step) {
    history.curves["reduced_train_loss"].set(step, 10.0 - static_cast<double>(step) * 0.01);
    history.curves["tokens_per_second"].set(step, 12345.0);
    history.curves["mfu"].set(step, 0.412);
    history.time_of_step.set(step, kNow - static_cast<double>(steps - step));
    history.last_step = step;
  }
  history.last_time = kNow - 1;
  history.memory = {{"weights", 3e9}, {"moments", 6e9}};
  history.slowest_ranks = {{2, 10}, {5, 30}};
  return history;
}

std::string text_of(const RunHistory& history, const WatchView& view) {
  std::string text;
  for (const std::string& line : watch_frame("demo", history, view)) text += line + "\n";
  return text;
}

TEST(WatchFrame, ShowsWhereARunStands) {
  const std::string text = text_of(history_of(250), {.now = kNow});
  for (const char* words : {"demo", "running", "1 restart", "25.0%", "step 250 of 1,000", "12 min 30 s left", "7.51",
                            "12,345", "41.2%", "8.38 GiB", "moments", "rank 5", "75% of steps"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(WatchFrame, LabelsTheEndsOfAFlatCurveApart) {
  RunHistory history = history_of(2);
  history.curves["reduced_train_loss"].set(0, 10.83);
  history.curves["reduced_train_loss"].set(1, 10.81);
  const std::string text = text_of(history, {.now = kNow});
  EXPECT_NE(text.find("  10.83 "), std::string::npos) << text;
  EXPECT_NE(text.find("  10.81 "), std::string::npos) << text;
}

TEST(WatchFrame, FitsAnyTerminal) {
  const RunHistory history = history_of(250);
  for (const int width : {20, 40, 80, 200}) {
    for (const int height : {3, 10, 24, 60}) {
      const std::vector<std::string> lines =
          watch_frame("demo", history, {.width = width, .height = height, .now = kNow});
      EXPECT_LE(lines.size(), static_cast<size_t>(height));
      for (const std::string& line : lines) EXPECT_LE(columns_of(line), width) << line;
    }
  }
}

TEST(WatchFrame, CutsNoNumber) {
  RunHistory history = history_of(250);
  history.memory = {{"weights", 3e9}, {"moments", 6e9}, {"scratch", 5.3e6}, {"outside arenas", 5e8}, {"none", 0.0}};
  const std::string all =
      "memory       8.85 GiB  moments 5.59 GiB, weights 2.79 GiB, outside arenas 476.8 MiB, scratch 5.1 MiB\n";
  EXPECT_NE(text_of(history, {.width = 100, .now = kNow}).find(all), std::string::npos);
  const std::string some = text_of(history, {.width = 60, .now = kNow});
  EXPECT_NE(some.find("8.85 GiB  moments 5.59 GiB and 3 more\n"), std::string::npos) << some;
}

TEST(WatchFrame, KeepsItsTitleAndNumbersInFewRows) {
  const std::vector<std::string> lines = watch_frame("demo", history_of(250), {.width = 80, .height = 9, .now = kNow});
  ASSERT_LE(lines.size(), 9u);
  EXPECT_TRUE(lines.front().starts_with("demo  running"));
  EXPECT_TRUE(lines.back().starts_with("last line")) << lines.back();
}

TEST(WatchFrame, SaysHowARunEnds) {
  RunHistory history;
  EXPECT_EQ(watch_state(history, {.now = kNow}), WatchState::starting);
  EXPECT_NE(text_of(history, {.now = kNow}).find("no step yet"), std::string::npos);
  history = history_of(250);
  EXPECT_EQ(watch_state(history, {.now = kNow}), WatchState::running);
  EXPECT_NE(text_of(history, {.now = kNow + 600}).find("stalled: no line for 10 min 1 s"), std::string::npos);
  EXPECT_EQ(watch_state(history, {.now = kNow + 600, .stall_seconds = 3600}), WatchState::running);
  history.end = RunEnd{.time = kNow, .reason = "SIGTERM"};
  EXPECT_NE(text_of(history, {.now = kNow + 600}).find("ended early: SIGTERM"), std::string::npos);
  EXPECT_NE(text_of(history_of(1000), {.now = kNow + 600}).find("complete"), std::string::npos);
  EXPECT_NE(text_of(history_of(1000), {.now = kNow + 600}).find("ended        10 min 1 s ago"), std::string::npos);
}

TEST(WatchFrame, HasColoursOnlyWhereAsked) {
  EXPECT_EQ(text_of(history_of(5), {.now = kNow}).find('\x1b'), std::string::npos);
  EXPECT_NE(text_of(history_of(5), {.now = kNow, .colour = true}).find("\x1b[1mdemo\x1b[0m"), std::string::npos);
}

TEST(SecondsLeft, CountsFromTheLastStart) {
  RunHistory history = history_of(250);
  EXPECT_DOUBLE_EQ(*seconds_left(history), 750.0);
  history.starts.push_back({.time = kNow, .step = 249});
  EXPECT_EQ(seconds_left(history), std::nullopt);
  EXPECT_EQ(seconds_left({}), std::nullopt);
}

TEST(Sparkline, GoesFromLowestToHighest) {
  EXPECT_EQ(sparkline({0, 7, std::nan(""), 3.5}), "▁█ ▅");
  EXPECT_EQ(sparkline({2, 2}), "▅▅");
  EXPECT_EQ(sparkline({}), "");
}

TEST(MeansByColumn, HasNoMoreColumnsThanPoints) {
  EXPECT_EQ(means_by_column({{0, 1}, {1, 3}, {2, 5}, {3, 7}}, 2), (std::vector<double>{2, 6}));
  EXPECT_EQ(means_by_column({{0, 1}}, 10), (std::vector<double>{1}));
  EXPECT_TRUE(means_by_column({}, 10).empty());
}

TEST(DottedCurve, JoinsItsDots) {
  const std::vector<std::string> falling = dotted_curve({1, 0}, 1, 0, 1);
  ASSERT_EQ(falling.size(), 1u);
  EXPECT_EQ(falling[0], "⢱");
  EXPECT_EQ(dotted_curve({0.5, std::nan("")}, 2, 0, 1).size(), 2u);
}

TEST(StyledLine, IsCutBetweenWords) {
  StyledLine line;
  line.add("äö", style::kBold).add(" 12 s, 34 s");
  EXPECT_EQ(line.columns(), 13);
  EXPECT_EQ(line.to_string(13, false), "äö 12 s, 34 s");
  EXPECT_EQ(line.to_string(12, false), "äö 12 s, 34…");
  EXPECT_EQ(line.to_string(11, false), "äö 12 s, …");
  EXPECT_EQ(line.to_string(5, true), "\x1b[1mäö\x1b[0m …");
  EXPECT_EQ(line.to_string(2, true), "\x1b[1mä\x1b[0m…");
}

}  // namespace
}  // namespace megalith::observe
