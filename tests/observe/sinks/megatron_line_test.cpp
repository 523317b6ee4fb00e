#include "observe/sinks/megatron_line.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/clock.h"

namespace megalith::observe {
namespace {

constexpr double kWhen = 1.75e9 + 0.25;

Metrics step(int64_t number, double loss, double seconds) {
  return {.kind = "train",
          .step = number,
          .values = {{"reduced_train_loss", loss},
                     {"lr", 1.5e-4},
                     {"consumed_samples", 256.0 * static_cast<double>(number + 1)},
                     {"grad_norm", 59.25},
                     {"step_time", seconds},
                     {"tflops_per_rank", 600.0 / seconds}},
          .when = {.wall = kWhen}};
}

class MegatronLineTest : public ::testing::Test {
 protected:
  MegatronLineTest()
      : sink_({.print = [this](std::string_view text) { out_ += text; },
               .max_steps = 500,
               .log_every_n_steps = 10,
               .global_batch_size = 256}) {}

  std::string take() { return std::exchange(out_, ""); }

  std::string out_;
  MegatronLineSink sink_;
};

TEST_F(MegatronLineTest, IsMegatronsCharacterForCharacter) {
  sink_.on_metrics(step(0, 11.0625, 2.0));
  EXPECT_EQ(
      take(),
      " [" + local_timestamp(kWhen) +
          "] iteration        1/     500 | consumed samples:          256 | elapsed time per iteration (ms): 2000.0 "
          "| throughput per GPU (TFLOP/s/GPU): 300.0 | learning rate: 1.500000E-04 | global batch size:   256 | lm "
          "loss: 1.106250E+01 | loss scale: 1.0 | grad norm: 59.250 | number of skipped iterations:   0 | number of "
          "nan iterations:   0 |\n");
}

TEST_F(MegatronLineTest, MeansOverTheStepsSinceTheLastLine) {
  sink_.on_metrics(step(0, 9.0, 2.0));
  take();
  for (int64_t number = 1; number < 9; ++number) sink_.on_metrics(step(number, 6.0, 3.0));
  EXPECT_EQ(take(), "");
  Metrics skipped = step(9, 100.0, 12.0);
  skipped.values.emplace_back("skipped", int64_t{1});
  sink_.on_metrics(skipped);
  const std::string line = take();
  for (const char* part : {"iteration       10/", "elapsed time per iteration (ms): 4000.0 |", "(TFLOP/s/GPU): 150.0 |",
                           "lm loss: 6.000000E+00 |", "skipped iterations:   1 |", "nan iterations:   0 |"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
}

TEST_F(MegatronLineTest, CountsLossesThatAreNotFinite) {
  sink_.on_metrics(step(0, std::nan(""), 2.0));
  const std::string line = take();
  EXPECT_NE(line.find("nan iterations:   1 |"), std::string::npos) << line;
  EXPECT_EQ(line.find("lm loss"), std::string::npos) << line;
}

TEST_F(MegatronLineTest, Validation) {
  sink_.on_metrics({.kind = "validation", .step = 99, .values = {{"val_loss", 2.0}}});
  const std::string text =
      " validation loss at iteration 100 | lm loss value: 2.000000E+00 | lm loss PPL: 7.389056E+00 | ";
  const std::string rule(text.size() + 1, '-');
  EXPECT_EQ(take(), rule + "\n" + text + "\n" + rule + "\n");
  EXPECT_EQ(megatron_perplexity(50.0), std::exp(20.0));
}

}  // namespace
}  // namespace megalith::observe
