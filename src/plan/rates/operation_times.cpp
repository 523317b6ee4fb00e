#include "plan/rates/operation_times.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "plan/rehearsal.h"

namespace megalith::plan {

namespace {

// Of the end of a step; all else belongs to a pass of a micro batch.
constexpr std::array<std::string_view, 8> kUpdate{
    "adamw",      "gradient_norm",    "clip_gradients", "set_update_scalars",
    "weigh_step", "set_step_scalars", "set_number",     "scale_update"};

// An fp8 GEMM takes longer among kernels that move data than by itself, again and again, as it is measured: what the
// steps of docs/performance.md take beyond the sum of their operations. Long ones hardly notice.
constexpr double kFp8AmongOthers = 0.07;
constexpr double kFp8AmongOthersMost = 60e-6;

// Attention with dropout is of kernels of our own: 150 TFLOPS on an H200 where cuDNN's reach 400 without.
constexpr double kDropoutRate = 150.0 / 400.0;

double gemm_share(const cost::Accelerator& gpu, const Constants& constants) {
  if (gpu.assumed) return gpu.assumed->gemm_share;
  return gpu.gemm_factor * (gpu.hopper_or_later ? constants.hopper_gemm_share : constants.ampere_gemm_share);
}

double fp8_rate(const cost::Accelerator& gpu, const Constants& constants) {
  const double share = gpu.assumed ? gpu.assumed->fp8_gemm_share : gpu.gemm_factor * constants.fp8_gemm_share;
  return gpu.fp8_tflops.value_or(0.0) * share;
}

// What GEMMs of our own choice of algorithms reach beside each other; the fitted shares are of other programs.
double gemm_rate(const cost::Accelerator& gpu, const Constants& constants) {
  return gpu.bf16_tflops * (gpu.best_gemm_share > 0 ? gpu.best_gemm_share : gemm_share(gpu, constants));
}

// How many times as long an operation of a kind takes as where it was measured.
double slower(ops::OpKind kind, const cost::Accelerator& gpu, const OwnRates& own) {
  const cost::Accelerator& there = own.measured_on;
  switch (kind) {
    case ops::OpKind::product:
      return gemm_rate(there, own.constants) / gemm_rate(gpu, own.constants);
    case ops::OpKind::attention:
      return there.bf16_tflops / (gpu.bf16_tflops * gpu.gemm_factor);
    case ops::OpKind::memory:
      return there.memory_tb_s / gpu.memory_tb_s;
  }
  return 1.0;
}

OperationTime from_data_sheet(const ops::OpCost& cost, const cost::Accelerator& gpu, const Constants& constants) {
  const double memory = cost.bytes / (constants.memory_share * gpu.memory_tb_s * 1e12);
  const double share = cost.kind == ops::OpKind::attention ? constants.attention_share : gemm_share(gpu, constants);
  return {std::max(memory, cost.flops / (gpu.bf16_tflops * 1e12 * share)), Known::assumed};
}

OperationTime time_of(const StepWork::Operation& operation, const RunFeatures& run, const OwnRates& own) {
  const cost::Accelerator& gpu = run.gpu;
  OperationTime time = own.rates.time_of(operation.name, operation.cost);
  if (time.seconds == 0.0) return from_data_sheet(operation.cost, gpu, own.constants);
  time.seconds *= slower(operation.cost.kind, gpu, own);
  if (gpu.name != own.measured_on.name) time.known = Known::assumed;
  // No fp8 GEMM was measured: what bf16 takes, by the ratio of the two.
  if (operation.cost.kind == ops::OpKind::product && is_fp8(operation.cost.shape) && time.of_other_format) {
    time.seconds *= gpu.bf16_tflops * gemm_share(gpu, own.constants) / fp8_rate(gpu, own.constants);
    time.known = Known::assumed;
  }
  if (operation.cost.kind == ops::OpKind::attention && time.of_other_format) {
    time.seconds *= has_dropout(operation.cost.shape) ? 1 / kDropoutRate : kDropoutRate;
    time.known = Known::assumed;
  }
  if (operation.cost.kind == ops::OpKind::product && is_fp8(operation.cost.shape))
    time.seconds += std::min(kFp8AmongOthers * time.seconds, kFp8AmongOthersMost);
  return time;
}

double compute_of(const BothPasses& block) {
  return block.forward.compute + block.forward.recompute + block.backward.compute + block.backward.recompute;
}

void scale_compute(BothPasses& block, double factor) {
  for (PassTime* pass : {&block.forward, &block.backward}) {
    pass->compute *= factor;
    pass->recompute *= factor;
  }
}

// One rank with a few layers.
OperationTimes passes_of(engine::StageRequest request, int64_t layers, const RunFeatures& run, const OwnRates& own) {
  request.config.layers = layers;
  const auto micro_batches = static_cast<double>(request.micro_batches);
  OperationTimes times;
  for (const StepWork::Operation& operation : Rehearsal(request).work_of(0).operations) {
    if (std::find(kUpdate.begin(), kUpdate.end(), operation.name) != kUpdate.end()) continue;
    const OperationTime time = time_of(operation, run, own);
    const double seconds = time.seconds * static_cast<double>(operation.calls) / micro_batches;
    (time.known == Known::measured       ? times.measured
     : time.known == Known::interpolated ? times.interpolated
                                         : times.assumed) += seconds;
    const ops::OpKind kind = operation.cost.kind;
    (kind == ops::OpKind::product     ? times.gemms
     : kind == ops::OpKind::attention ? times.attention
                                      : times.memory_bound) += seconds;
  }
  return times;
}

}  // namespace

OwnTimes own_times(const engine::StageRequest& request, const RunFeatures& run, const OwnRates& own) {
  constexpr int64_t kMicroBatches = 4;  // the first of a step overwrites gradients, the others add to them
  engine::StageRequest small = request;
  small.layout = {.tensor = request.layout.tensor,
                  .context = request.layout.context,
                  .sequence_parallel = request.layout.sequence_parallel};
  small.ramp_micro_batches.clear();
  small.micro_batches = std::min(kMicroBatches, request.micro_batches);
  const OperationTimes one = passes_of(small, 1, run, own);
  OwnTimes result{.blocks = block_times(run, own.constants), .operations = passes_of(small, 2, run, own)};
  const double layer = result.operations.all() - one.all();
  auto& [layers, head, embedding] = result.blocks;
  const double ends = (one.all() - layer) / (compute_of(head) + compute_of(embedding));
  scale_compute(layers, layer / compute_of(layers));
  scale_compute(head, ends);
  scale_compute(embedding, ends);
  // Of the whole model, not of two layers of it.
  const double more = static_cast<double>(run.model.layers) - 1;
  for (double OperationTimes::*some :
       {&OperationTimes::measured, &OperationTimes::interpolated, &OperationTimes::assumed, &OperationTimes::gemms,
        &OperationTimes::attention, &OperationTimes::memory_bound})
    result.operations.*some = std::max(0.0, one.*some + more * (result.operations.*some - one.*some));
  return result;
}

double own_update_time(const RunFeatures& run, const OwnRates& own) {
  // Gradient, remainder, weight and two moments are read; all but the gradient are written.
  constexpr double kAdamBytes = 28;
  constexpr double kNormBytes = 4;
  const double shards = run.sharding == Sharding::none ? 1.0 : static_cast<double>(run.replicas());
  const double updated = weights_of_rank(run) / shards;
  const std::string shape = std::to_string(static_cast<int64_t>(updated)) + " parameters";
  double seconds = 0.0;
  for (const auto& [name, bytes] : {std::pair{"adamw", kAdamBytes}, {"gradient_norm", kNormBytes}}) {
    StepWork::Operation operation;
    operation.name = name;
    operation.cost = {.bytes = bytes * updated, .shape = shape};
    seconds += time_of(operation, run, own).seconds;
  }
  return seconds;
}

}  // namespace megalith::plan
