#include "train/bench/bench_step.h"

#include <algorithm>
#include <fstream>

#include "core/clock.h"
#include "core/device.h"
#include "cost/flops.h"
#include "data/tokenizer/tokenizer.h"
#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "optim/lr_schedule.h"
#include "plan/rehearsal.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "train/bench/random_batch.h"
#include "train/evaluate.h"
#include "train/step_metrics.h"
#include "train/tuned_files.h"

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
double time_steps(engine::Engine& engine, const config::Run& run, const BenchStepOptions& options,
                  BenchStepResult& result) {
  const double begin = monotonic_seconds();
  std::vector<StreamMark> ends(static_cast<size_t>(options.warm_up + options.steps));
  for (int64_t step = 0; step < std::ssize(ends); ++step) {
    const data::StepBatch batch = random_step(engine.options(), options.micro_batches, step);
    engine.run_step(
        {.step = step, .weight = batch.total_weight, .learning_rate = optim::learning_rate(run.model.optim, step)},
        batch.micro_batches);
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

void profile(engine::Engine& engine, const config::Run& run, const BenchStepOptions& options, BenchStepResult& result) {
  const data::StepBatch batch = random_step(engine.options(), options.micro_batches, 0);
  engine.set_recording(false);
  result.copy_bytes_per_second = copy_rate(engine.stream(), engine.arenas().activations.whole());
  result.operations = profile_ops(engine.stream(), [&] {
    engine.run_step({.weight = batch.total_weight, .learning_rate = run.model.optim.lr}, batch.micro_batches);
  });
  const plan::StepWork work = plan::Rehearsal(engine.options().stage).work_of(0);
  result.floor_seconds = floor_seconds(work, result.operations, result.copy_bytes_per_second);
}

}  // namespace

BenchStepResult bench_step(const config::Run& run, const BenchStepOptions& options) {
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  plan::check_ranks(run, 1);
  plan::check_layout(run, vocabulary.size);
  const engine::StageRequest request = plan::stage_request(run, vocabulary.size);
  const bool on_gpu = request.device == Device::cuda;
  BenchStepResult result;
  const double begin = monotonic_seconds();
  {
    config::Run unsaved = run;
    unsaved.exp_manager.create_checkpoint_callback = false;
    check_device(unsaved, request, {});
    engine::EngineOptions engine_options = plan::training_options(run, vocabulary.size);
    engine_options.stage.micro_batches = options.micro_batches;
    const auto world = comm::make_lone_world(request.device);
    plan::RankMemory memory = plan::memory_of_rank(engine_options.stage, 0);
    engine::Engine engine(engine_options, *world, memory.arenas);
    engine.initialise(static_cast<uint64_t>(run.model.seed));
    tune(engine, run, {});
    const double ready = monotonic_seconds() - begin;
    result.step_seconds = time_steps(engine, run, options, result);
    result.start_seconds += ready;
    if (const auto outside = engine.bytes_outside()) memory.table.set(plan::kOutsideArenas, *outside);
    result.planned_bytes = memory.table.total();
    result.peak_bytes = on_gpu ? device_memory().used : peak_resident_bytes();
    const Accelerator gpu = on_gpu ? find_accelerators().at(0) : Accelerator{.name = "cpu"};
    result.device = gpu.name;
    result.driver = gpu.driver;
    result.peak_tflops = peak_tflops_of(engine.options());
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
