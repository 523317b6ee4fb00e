// What telling the numbers of a step costs the thread that trains, with every sink on: console, Megatron's line,
// events.jsonl, dllogger.json, TensorBoard, Prometheus.
//
//   telemetry_bench
//
// Timed is the trainer's part: naming the numbers and handing them over. Between two steps the sinks come to rest, as
// they do in training, so that each step also pays for waking their threads.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "comm/store/socket.h"
#include "config/validate.h"
#include "core/clock.h"
#include "train/run/listeners.h"
#include "train/step_metrics.h"

namespace {

using namespace megalith;

class ScratchDirectory {
 public:
  ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "telemetry_bench.XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) io_error_errno("making " + path_);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

config::Run run_with_every_sink(const std::string& directory) {
  config::Run run;
  run.model.data.data_impl = config::DataImpl::mock;
  run.exp_manager.explicit_log_dir = directory;
  run.exp_manager.log_megatron_iterations = true;
  run.exp_manager.prometheus.port = comm::listen_on("127.0.0.1", 0).local_port();
  run.exp_manager.step_floor_seconds = 0.5;
  run.trainer.max_steps = int64_t{1} << 30;
  config::validate(run);
  return run;
}

// Of many ranks on a GPU: every number is there.
const engine::StepResult kResult{.loss = 6.13,
                                 .backward_seconds = 0.6,
                                 .wait_seconds = 0.1,
                                 .spread = engine::RankSpread{.slowest_rank = 3, .slowest_seconds = 1.0},
                                 .update = {.gradient_norm = 1.5}};

void emit(benchmark::State& state) {
  std::ostringstream screen;
  std::streambuf* const terminal = std::cout.rdbuf(screen.rdbuf());
  const ScratchDirectory scratch;
  const config::Run run = run_with_every_sink(scratch.path() + "/run");
  const train::RunDirectory directory = train::RunDirectory::open(run);
  train::StepMetrics metrics(run, {.padded_vocabulary = 51200, .peak_tflops = 989.0});
  std::vector<double> seconds;
  {
    train::Listeners listeners;
    listeners.add_sinks(run, directory, {});
    for (auto _ : state) {
      const double begin = monotonic_seconds();
      const auto step = static_cast<int64_t>(seconds.size());
      listeners.telemetry.emit(metrics.of_step(
          {.step = step, .consumed_samples = step + 1, .learning_rate = 1e-4, .seconds = 1.0, .result = kResult}));
      seconds.push_back(monotonic_seconds() - begin);
      state.SetIterationTime(seconds.back());
      listeners.telemetry.flush();
      screen.str("");
    }
  }
  std::cout.rdbuf(terminal);
  std::sort(seconds.begin(), seconds.end());
  state.counters["median_us"] = seconds[seconds.size() / 2] * 1e6;
  state.counters["p99_us"] = seconds[seconds.size() * 99 / 100] * 1e6;
}

BENCHMARK(emit)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(20000);

}  // namespace

BENCHMARK_MAIN();
