#include "observe/sinks/console.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "observe/draw/styled_line.h"
#include "observe/sinks/log_files.h"

namespace megalith::observe {
namespace {

class ConsoleTest : public ::testing::Test {
 protected:
  ConsoleOptions options(bool terminal) {
    return {.out = &out_,
            .terminal = terminal,
            .width = [this] { return width_; },
            .max_steps = 50,
            .first_step = 0,
            .log_every_n_steps = 5,
            .clock = [this] { return now_; }};
  }

  static Metrics train(int64_t step) {
    return {.kind = "train",
            .step = step,
            .values = {{"reduced_train_loss", 6.1302},
                       {"lr", 1e-4},
                       {"global_step", static_cast<double>(step)},
                       {"consumed_samples", 256.0 * static_cast<double>(step + 1)},
                       {"train_step_timing in s", 5.9},
                       {"epoch", int64_t{0}}}};
  }
  static Metrics validation(int64_t step) {
    return {.kind = "validation", .step = step, .values = {{"val_loss", 6.25}}};
  }

  std::string take() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }

  std::ostringstream out_;
  double now_ = 100.0;
  int width_ = 400;
};

std::string fifth_line(const char* remaining) {
  return fmt::format(
      "Epoch 0:  10%|█         | 5/50 [00:12<{}, reduced_train_loss=6.130, global_step=4.000, consumed_samples=1280.0, "
      "train_step_timing in s=5.900, val_loss=6.250]",
      remaining);
}

TEST_F(ConsoleTest, LiveLine) {
  {
    ConsoleSink sink(options(true));
    now_ = 112.0;
    sink.on_metrics(validation(3));
    take();
    sink.on_metrics(train(3));
    now_ += 0.05;
    EXPECT_EQ(take(), "");  // too soon after the last one
    sink.on_metrics(train(4));
    EXPECT_EQ(take(), "");
    now_ = 112.9;
    sink.on_metrics(train(4));
    EXPECT_EQ(take(), fmt::format("\r{}\x1b[K", fifth_line("01:56")));
    now_ = 112.0;
  }
  EXPECT_EQ(take(), fmt::format("\r{}\x1b[K\n", fifth_line("01:48")));
}

TEST_F(ConsoleTest, PlainLines) {
  ConsoleSink sink(options(false));
  sink.on_metrics(validation(0));
  take();
  for (int64_t step = 0; step < 4; ++step) sink.on_metrics(train(step));
  EXPECT_EQ(take(), "");
  now_ = 112.0;
  sink.on_metrics(train(4));
  EXPECT_EQ(take(), fifth_line("01:48") + "\n");
  for (int64_t step = 5; step < 9; ++step) sink.on_metrics(train(step));
  EXPECT_EQ(take(), "");
  sink.on_metrics(validation(8));
  EXPECT_NE(take().find("9/50"), std::string::npos);
  sink.on_metrics(train(49));
  const std::string last = take();
  EXPECT_NE(last.find("100%|██████████| 50/50"), std::string::npos);
  for (const char c : last) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  sink.finish();
  EXPECT_EQ(take(), "");
}

TEST_F(ConsoleTest, FitsTheTerminalWithoutBreakingWords) {
  ConsoleSink sink(options(true));
  for (width_ = 1; width_ < 200; ++width_) {
    now_ += 1.0;
    sink.on_metrics(train(24));
    std::string text = take();
    ASSERT_TRUE(text.starts_with("\r") && text.ends_with("\x1b[K"));
    text = text.substr(1, text.size() - 4);
    EXPECT_LE(columns_of(text), std::max(1, width_ - 1));
    if (width_ <= 5) continue;
    EXPECT_TRUE(text.ends_with("]") || text.ends_with("%") || text.ends_with("25/50")) << text;
  }
}

TEST_F(ConsoleTest, KeepsWhatMattersMostInANarrowTerminal) {
  ConsoleSink sink(options(true));
  Metrics metrics = train(24);
  metrics.values.emplace_back("tokens_per_second", 1234567.0);
  metrics.values.emplace_back("mfu", 0.412);
  sink.on_metrics(validation(23));
  take();
  now_ += 70.0;
  const auto shown_in = [&](int width) {
    width_ = width;
    now_ += 1.0;
    sink.on_metrics(metrics);
    return take();
  };
  EXPECT_EQ(shown_in(80), "\r 50%|██▌  | 25/50 [01:11<01:11, loss=6.1302, 1,234,567 tokens/s, MFU=41.2%]\x1b[K");
  EXPECT_EQ(shown_in(60), "\r 50% 25/50 [loss=6.1302, 1,234,567 tokens/s, MFU=41.2%]\x1b[K");
  EXPECT_EQ(shown_in(40), "\r 50% 25/50 [loss=6.1302, 1.235M tok/s]\x1b[K");
  EXPECT_NE(shown_in(160).find("val_loss=6.2500, step=5.9s, samples=6400]"), std::string::npos);
  EXPECT_NE(shown_in(240).find("reduced_train_loss=6.130"), std::string::npos);
}

TEST_F(ConsoleTest, TellsWhatIsDoneBeforeTheFirstStep) {
  ConsoleSink sink(options(true));
  sink.on_event({.name = "job_started"});
  EXPECT_EQ(take(), "\rEpoch 0:   0%|          | 0/50 [00:00<?, making the weights]\x1b[K");
  now_ += 9.0;
  sink.on_event({.name = "checkpoint_loaded"});
  EXPECT_EQ(take(), "\rEpoch 0:   0%|          | 0/50 [00:09<?, preparing the first step]\x1b[K");
  now_ += 2.0;
  sink.on_metrics(train(0));
  EXPECT_NE(take().find("1/50 [00:11<01:38, reduced"), std::string::npos);  // steps alone say how long others take
  sink.on_event({.name = "validation", .phase = Phase::begin});
  EXPECT_NE(take().find(", validating]"), std::string::npos);
  sink.on_event({.name = "validation", .phase = Phase::end});
  EXPECT_EQ(take().find("validating"), std::string::npos);
}

TEST_F(ConsoleTest, TicksWhileNothingIsTold) {
  ConsoleOptions ticking = options(true);
  ticking.tick_seconds = 0.01;
  ticking.clock = nullptr;
  ticking.loads_checkpoint = true;
  ConsoleSink sink(ticking);
  sink.on_event({.name = "job_started"});
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  sink.finish();
  const std::string text = take();
  size_t drawn = 0;
  for (size_t at = text.find("loading the checkpoint"); at != std::string::npos;
       at = text.find("loading the checkpoint", at + 1))
    ++drawn;
  EXPECT_GE(drawn, 3u) << text;
}

TEST_F(ConsoleTest, LogLinesStandAboveTheLiveLine) {
  const auto sink = std::make_shared<ConsoleSink>(options(true));
  print_log_above(sink);
  log_info("before");
  EXPECT_EQ(take().find('\r'), std::string::npos);
  sink->on_metrics(train(0));
  const std::string live = take();
  log_info("hello");
  const std::string text = take();
  EXPECT_TRUE(text.starts_with("\r\x1b[K[Megalith I ")) << text;
  EXPECT_TRUE(text.ends_with("] hello\n" + live)) << text;
  set_log_console(nullptr);
}

TEST_F(ConsoleTest, AResumedRunCountsOnlyItsOwnTime) {
  ConsoleOptions resumed = options(true);
  resumed.first_step = 40;
  ConsoleSink sink(resumed);
  now_ += 10.0;
  sink.on_metrics(train(44));
  EXPECT_NE(take().find("45/50 [00:10<00:10"), std::string::npos);
}

TEST(ConsoleNumber, AsLightningShowsThem) {
  const std::pair<double, const char*> cases[] = {
      {6.1302, "6.130"}, {4.0, "4.000"},     {1280.0, "1280.0"}, {5.9, "5.900"},  {10.324, "10.30"},
      {0.0, "0.000"},    {123.456, "123.0"}, {3.6e-5, "3.6e-5"}, {0.25, "0.250"}, {100352.0, "1e+5"}};
  for (const auto& [number, text] : cases) EXPECT_EQ(console_number(number), text) << number;
  EXPECT_EQ(console_number(std::nan("")), "nan");
}

}  // namespace
}  // namespace megalith::observe
