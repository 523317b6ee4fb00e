// What telling the numbers of a step costs the thread that trains, with every sink on: console, Megatron's line,
// events.jsonl, dllogger.json, TensorBoard, Prometheus.
//
//   telemetry_bench
//
// `emit` is the trainer's part: naming the numbers and handing them over. Between two steps the sinks come to rest, as
// they do in training, so that each step also pays for waking their thread. `max_us` and `p99_us` are over all steps.
// `sinks` is what happens on the other thread, for comparison: formatting for all sinks.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/validate.h"
#include "core/clock.h"
#include "observe/console.h"
#include "observe/dllogger.h"
#include "observe/events.h"
#include "observe/megatron_line.h"
#include "observe/prometheus.h"
#include "observe/queued_sink.h"
#include "observe/tensorboard.h"
#include "train/step_metrics.h"

namespace {

using namespace megalith;

class RunFiles {
 public:
  RunFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "telemetry_bench.XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~RunFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<std::shared_ptr<Sink>> every_sink(const std::filesystem::path& directory, std::ostream& console) {
  return {std::make_shared<observe::ConsoleSink>(
              observe::ConsoleOptions{.out = &console, .terminal = true, .max_steps = 1 << 30}),
          std::make_shared<observe::MegatronLineSink>(observe::MegatronLineOptions{
              .print = [&](std::string_view text) { console << text; }, .max_steps = 1 << 30}),
          std::make_shared<observe::EventsSink>(directory / "events.jsonl", observe::EventOrigin{.run_id = "bench"}),
          std::make_shared<observe::DlloggerSink>(directory / "dllogger.json", nlohmann::ordered_json::object()),
          std::make_shared<observe::TensorBoardSink>(observe::TensorBoardOptions{.directory = directory}),
          std::make_shared<observe::PrometheusSink>(observe::PrometheusOptions{})};
}

// Of many ranks on a GPU: every number is there.
train::StepMetrics full_metrics() {
  config::Run run;
  config::validate(run);
  run.exp_manager.step_floor_seconds = 0.5;
  return {run, {.padded_vocabulary = 51200, .samples_in_dataset = 1 << 20, .peak_tflops = 989.0}};
}

const train::StepResult kResult{.loss = 6.13,
                                .backward_seconds = 0.6,
                                .wait_seconds = 0.1,
                                .spread = train::RankSpread{.slowest_rank = 3, .slowest_seconds = 1.0},
                                .update = {.gradient_norm = 1.5}};

train::StepReport report_of(int64_t step) {
  return {.step = step, .consumed_samples = step + 1, .learning_rate = 1e-4, .seconds = 1.0, .result = kResult};
}

void emit(benchmark::State& state) {
  const RunFiles files;
  std::ostringstream console;
  Telemetry telemetry;
  telemetry.add(std::make_shared<observe::QueuedSink>(every_sink(files.path(), console)));
  train::StepMetrics metrics = full_metrics();
  std::vector<double> seconds;
  int64_t step = 0;
  for (auto _ : state) {
    const double begin = monotonic_seconds();
    telemetry.emit(metrics.of_step(report_of(step++)));
    seconds.push_back(monotonic_seconds() - begin);
    state.SetIterationTime(seconds.back());
    telemetry.flush();
    console.str("");
  }
  std::sort(seconds.begin(), seconds.end());
  state.counters["p99_us"] = seconds[seconds.size() * 99 / 100] * 1e6;
  state.counters["max_us"] = seconds.back() * 1e6;
}

void sinks(benchmark::State& state) {
  const RunFiles files;
  std::ostringstream console;
  Telemetry telemetry;
  for (auto& sink : every_sink(files.path(), console)) telemetry.add(std::move(sink));
  train::StepMetrics metrics = full_metrics();
  int64_t step = 0;
  for (auto _ : state) {
    telemetry.emit(metrics.of_step(report_of(step++)));
    console.str("");
  }
}

BENCHMARK(emit)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(sinks)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
