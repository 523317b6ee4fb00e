#include "train/run/listeners.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/store/socket.h"
#include "core/clock.h"
#include "expect_error.h"
#include "train/step_metrics.h"
#include "train/tiny_run.h"

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;

int64_t free_port() {
  return comm::listen_on("127.0.0.1", 0).local_port();
}

// Takes what goes to the console for as long as it lives.
class QuietConsole {
 public:
  QuietConsole() : kept_(std::cout.rdbuf(taken_.rdbuf())) {}
  ~QuietConsole() { std::cout.rdbuf(kept_); }
  QuietConsole(const QuietConsole&) = delete;
  QuietConsole& operator=(const QuietConsole&) = delete;

  std::string text() const { return taken_.str(); }

 private:
  std::ostringstream taken_;
  std::streambuf* kept_;
};

config::Run run_with_every_sink(const TempDir& dir) {
  return tiny_run(kTinyGpt, dir / "run",
                  {"trainer.max_steps=400", "exp_manager.log_megatron_iterations=true",
                   "exp_manager.step_floor_seconds=0.5", fmt::format("exp_manager.prometheus.port={}", free_port())});
}

TEST(Listeners, TellingAStepToEverySinkCostsTheLoopAtMost50Microseconds) {
  const TempDir dir;
  const QuietConsole quiet;
  const config::Run run = run_with_every_sink(dir);
  const RunDirectory directory = RunDirectory::open(run);
  Listeners listeners;
  listeners.add_sinks(run, directory, {});
  ASSERT_NE(listeners.console, nullptr);
  StepMetrics metrics(run, {.padded_vocabulary = 264, .peak_tflops = 989.0});
  const engine::StepResult result{.wait_seconds = 0.1, .spread = engine::RankSpread{.slowest_rank = 3}};
  std::vector<double> seconds;
  for (int64_t step = 0; step < run.trainer.max_steps; ++step) {
    const double begin = monotonic_seconds();
    listeners.telemetry.emit(
        metrics.of_step({.step = step, .consumed_samples = 4 * (step + 1), .seconds = 1.0, .result = result}));
    seconds.push_back(monotonic_seconds() - begin);
    if (step % 10 == 0) listeners.telemetry.flush();
  }
  listeners.finish();
  // The median: on a busy machine the operating system takes some of the others for itself.
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  EXPECT_LT(*middle, 50e-6);
  EXPECT_NE(quiet.text().find("| 400/400 ["), std::string::npos);
  EXPECT_NE(quiet.text().find("iteration      400/     400 |"), std::string::npos);
}

TEST(Listeners, APortThatIsTakenIsTheUsersToChange) {
  const TempDir dir;
  config::Run run = run_with_every_sink(dir);
  const comm::Socket other = comm::listen_on("127.0.0.1", 0);
  run.exp_manager.prometheus.port = other.local_port();
  const RunDirectory directory = RunDirectory::open(run);
  Listeners listeners;
  user_error_of([&] { listeners.add_sinks(run, directory, {}); });
}

}  // namespace
}  // namespace megalith::train::testing
