#include "train/bench_step.h"

#include <algorithm>
#include <fstream>

#include "core/clock.h"
#include "core/device.h"
#include "cost/flops.h"
#include "data/tokenizer.h"
#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "optim/lr_schedule.h"
#include "train/describe.h"
#include "train/layout.h"
#include "train/plan_files.h"
#include "train/random_batch.h"
#include "train/step.h"

namespace megalith::train {

namespace {

double sgemm_rate(int threads) {
  constexpr int64_t kSize = 3072;
  ThreadPool pool(threads);
  Stream stream(pool);
  Arena arena("sgemm", Device::cpu, 3 * Arena::footprint(DType::f32, kSize * kSize));
  const Tensor a = arena.allocate("a", DType::f32, {kSize, kSize});
  const Tensor b = arena.allocate("b", DType::f32, {kSize, kSize});
  const Tensor c = arena.allocate("c", DType::f32, {kSize, kSize});
  ops::normal_init(stream, {.x = a, .key = 1, .global_cols = kSize});
  ops::normal_init(stream, {.x = b, .key = 2, .global_cols = kSize});
  double best = 0.0;
  for (int i = 0; i < 4; ++i) {
    const double begin = monotonic_seconds();
    ops::gemm(stream, {.a = a, .b = b, .transpose_b = true, .c = c});
    best = std::max(best, 2.0 * kSize * kSize * kSize / (monotonic_seconds() - begin));
  }
  return best;
}

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  fail(ErrorKind::io, "/proc/self/status does not tell the peak memory");
}

// The median of the timed steps; each is timed from the end of the one before it.
double time_steps(Engine& engine, const config::Run& run, const BenchStepOptions& options, BenchStepResult& result) {
  const double begin = monotonic_seconds();
  Progress progress;
  std::vector<StreamMark> ends(static_cast<size_t>(options.warm_up + options.steps));
  for (int64_t step = 0; step < std::ssize(ends); ++step) {
    const data::StepBatch batch = random_step(engine.options(), options.micro_batches, step);
    run_step(engine, batch, {.step = step, .learning_rate = optim::learning_rate(run.model.optim, step)}, progress);
    ends[static_cast<size_t>(step)].record(engine.stream());
    if (step == 0) {
      engine.stream().wait();
      result.start_seconds = monotonic_seconds() - begin;
    }
  }
  result.loss = engine.result_of_step(0).loss;
  std::vector<double> seconds;
  for (size_t i = static_cast<size_t>(options.warm_up); i < ends.size(); ++i) {
    seconds.push_back(StreamMark::seconds_between(ends[i - 1], ends[i]));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void profile(Engine& engine, const config::Run& run, const BenchStepOptions& options, BenchStepResult& result) {
  const data::StepBatch batch = random_step(engine.options(), options.micro_batches, 0);
  Progress progress;
  engine.set_recording(false);
  result.copy_bytes_per_second = copy_rate(engine.stream(), engine.scratch_memory());
  result.operations =
      profile_ops(engine.stream(), [&] { run_step(engine, batch, {.learning_rate = run.model.optim.lr}, progress); });
  result.floor_seconds = floor_seconds(result.operations, result.copy_bytes_per_second);
}

}  // namespace

BenchStepResult bench_step(const config::Run& run, const BenchStepOptions& options) {
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  check_ranks(run, 1);
  check_layout(run, vocabulary.size);
  const model::StageRequest request = stage_request(run, vocabulary.size);
  const bool on_gpu = request.device == Device::cuda;
  BenchStepResult result;
  const double begin = monotonic_seconds();
  {
    check_device(run, request);
    EngineOptions engine_options = training_options(run, vocabulary.size);
    engine_options.stage.micro_batches = options.micro_batches;
    Engine engine(engine_options);
    engine.initialise(static_cast<uint64_t>(run.model.seed));
    make_plans(engine, run, {});
    const double ready = monotonic_seconds() - begin;
    result.step_seconds = time_steps(engine, run, options, result);
    result.start_seconds += ready;
    result.planned_bytes = engine.memory().total();
    result.peak_bytes = on_gpu ? device_memory().used : peak_resident_bytes();
    result.device = on_gpu ? find_accelerators().at(0).name : "cpu";
    if (on_gpu && options.profile) profile(engine, run, options, result);
  }
  const auto samples = static_cast<double>(options.micro_batches * request.batch);
  const int64_t padded = request.config.padded_vocabulary;
  result.tokens_per_second = samples * static_cast<double>(request.length) / result.step_seconds;
  result.flops_per_second = samples * cost::model_flops_per_sample(run.model, padded) / result.step_seconds;
  result.causal_flops_per_second = samples * cost::causal_flops_per_sample(run.model, padded) / result.step_seconds;
  if (!on_gpu) result.sgemm_flops_per_second = sgemm_rate(request.threads);
  return result;
}

}  // namespace megalith::train
