#include "train/bench_step.h"

#include <algorithm>
#include <fstream>

#include "core/clock.h"
#include "core/rng.h"
#include "cost/flops.h"
#include "data/tokenizer.h"
#include "ops/elementwise.h"
#include "ops/gemm.h"
#include "optim/lr_schedule.h"
#include "train/describe.h"
#include "train/step.h"

namespace megalith::train {

namespace {

double sgemm_gflops(int threads) {
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
    best = std::max(best, 2.0 * kSize * kSize * kSize / (monotonic_seconds() - begin) / 1e9);
  }
  return best;
}

data::StepBatch random_batch(const Engine& engine, int64_t micro_batches, int64_t step) {
  const EngineOptions& options = engine.options();
  data::StepBatch batch;
  for (int64_t m = 0; m < micro_batches; ++m) {
    data::MicroBatch micro{.batch = options.batch, .length = options.length};
    for (int64_t i = 0; i < options.batch * options.length; ++i) {
      const auto words = philox(named_key(static_cast<uint64_t>(step), "bench"),
                                {static_cast<uint32_t>(i), static_cast<uint32_t>(m), 0, 0});
      micro.inputs.push_back(static_cast<int32_t>(words[0] % static_cast<uint32_t>(options.model.vocabulary)));
      micro.targets.push_back(static_cast<int32_t>(words[1] % static_cast<uint32_t>(options.model.vocabulary)));
      micro.weights.push_back(1.0F);
    }
    for (int64_t i = 0; i < options.batch; ++i) micro.sample_ids.push_back(m * options.batch + i);
    batch.total_weight += static_cast<double>(micro.weights.size());
    batch.micro_batches.push_back(std::move(micro));
  }
  return batch;
}

int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  fail(ErrorKind::io, "/proc/self/status does not tell the peak memory");
}

}  // namespace

BenchStepResult bench_step(const config::Run& run, const BenchStepOptions& options) {
  const data::Vocabulary vocabulary = data::vocabulary_of(run.model.tokenizer);
  const model::MemoryRequest request = memory_request(run, vocabulary.size);
  BenchStepResult result;
  {
    Engine engine(training_options(run, vocabulary.size));
    engine.initialise(static_cast<uint64_t>(run.model.seed));
    const parallel::Schedule schedule = parallel::single_stage_schedule(options.micro_batches);
    Progress progress;
    std::vector<double> seconds;
    for (int64_t step = 0; step <= options.steps; ++step) {
      const data::StepBatch batch = random_batch(engine, options.micro_batches, step);
      const double begin = monotonic_seconds();
      run_step(engine, schedule, batch, step, optim::learning_rate(run.model.optim, step), progress);
      if (step > 0) seconds.push_back(monotonic_seconds() - begin);
    }
    std::sort(seconds.begin(), seconds.end());
    result.step_seconds = seconds[seconds.size() / 2];
    result.planned_bytes = engine.memory().total();
    result.peak_bytes = peak_resident_bytes();
  }
  const auto samples = static_cast<double>(options.micro_batches * request.batch);
  result.tokens_per_second = samples * static_cast<double>(request.length) / result.step_seconds;
  result.gflops =
      samples * cost::model_flops_per_sample(run.model, request.config.padded_vocabulary) / result.step_seconds / 1e9;
  result.sgemm_gflops = sgemm_gflops(request.cpu_threads);
  return result;
}

}  // namespace megalith::train
