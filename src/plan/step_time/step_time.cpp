#include "plan/step_time/step_time.h"

#include <algorithm>
#include <cmath>

#include "plan/step_time/wire_time.h"

namespace megalith::plan {

double StepParts::total() const {
  return compute + recompute + tensor + context + imbalance + bubble + messages + data + optimizer + host + jitter;
}

namespace {

// Megatron and NeMo see no fewer than this of data-parallel calls that overlap.
constexpr double kLeastExposed = 0.1;
// Collectives beside compute take multiprocessors and bandwidth from it.
constexpr double kSlowedByOverlap = 0.15;
// fp32 gradient, master weight and two moments read, and written but for the gradient, and the 16-bit weight.
constexpr double kUpdateBytes = 34;
constexpr double kNormBytes = 4;

struct StageTimes {
  PassTime forward;  // of the mean stage, one micro batch
  PassTime backward;
  double slowest = 0.0;
  double sum = 0.0;
  double weights = 0.0;  // of the rank with most

  double mean(int64_t stages) const { return sum / static_cast<double>(stages); }
};

StageTimes stage_times(const RunFeatures& run, const BlockTimes& blocks) {
  const auto& [layer, head, embedding] = blocks;
  StageTimes times;
  times.weights = weights_of_rank(run);
  for (int64_t stage = 0; stage < run.pipeline; ++stage) {
    const auto layers = static_cast<double>(run.layers_of_stage(stage));
    const bool first = stage == 0;
    const bool last = stage == run.pipeline - 1;
    const double all = layers * layer.total() + (first ? embedding.total() : 0) + (last ? head.total() : 0);
    times.sum += all;
    times.slowest = std::max(times.slowest, all);
  }
  const auto stages = static_cast<double>(run.pipeline);
  const double layers_each = static_cast<double>(run.model.layers) / stages;
  times.forward = layers_each * layer.forward;
  times.forward += (1 / stages) * embedding.forward;
  times.forward += (1 / stages) * head.forward;
  times.backward = layers_each * layer.backward;
  times.backward += (1 / stages) * embedding.backward;
  times.backward += (1 / stages) * head.backward;
  return times;
}

double exposed_data(const RunFeatures& run, const StageTimes& times, const DataCalls& calls) {
  if (!run.data_overlaps) return calls.reduce + calls.gather;
  const double forward = times.forward.total();
  const double backward = times.backward.total();
  const auto v = static_cast<double>(run.chunks);
  const auto p = static_cast<double>(run.pipeline);
  if (run.chunks > 1) {
    const double hidden = (v - 1) / v;
    return (calls.reduce + calls.gather) / v + std::max(0.0, hidden * (calls.reduce - p * backward)) +
           std::max(0.0, hidden * (calls.gather - p * forward));
  }
  const double reduce = calls.last_bucket + std::max(0.0, calls.reduce - calls.last_bucket - backward);
  const double gather = calls.gather > 0 ? calls.last_bucket + std::max(0.0, calls.gather - forward) : 0;
  return std::max(kLeastExposed * (calls.reduce + calls.gather), reduce + gather);
}

// Each micro batch gathers layer by layer, forward and backward, and reduces.
double exposed_fsdp(const RunFeatures& run, const StageTimes& times, const DataCalls& calls) {
  const auto m = static_cast<double>(run.micro_batches());
  const double one_layer = 1.0 / static_cast<double>(run.model.layers);
  const double forward = calls.gather;
  const double backward = calls.gather + calls.reduce;
  if (!run.data_overlaps) return m * (forward + backward);
  const auto exposed = [](double wire, double compute) {
    return std::max(0.0, wire - compute) + kSlowedByOverlap * std::min(wire, compute);
  };
  return m * (exposed(forward, times.forward.total()) + exposed(backward, times.backward.total())) +
         one_layer * (forward + calls.reduce);
}

double optimizer_time(const RunFeatures& run, const Constants& constants, double weights) {
  const double shards = run.sharding == Sharding::none    ? 1
                        : run.sharding == Sharding::zero1 ? static_cast<double>(run.replicas())
                                                          : static_cast<double>(run.shard_group * run.context);
  const double bytes = weights * (kUpdateBytes / shards + kNormBytes);
  return bytes / (constants.memory_share * run.gpu.memory_tb_s * 1e12) + (run.python ? constants.step_s : 0.0) +
         weight_cast_time(run, constants, weights);
}

}  // namespace

double weights_of_rank(const RunFeatures& run) {
  const double table = static_cast<double>(run.model.vocabulary * run.model.hidden);
  double most = 0.0;
  for (int64_t stage = 0; stage < run.pipeline; ++stage) {
    const bool first = stage == 0;
    const bool last = stage == run.pipeline - 1;
    const double tables = first && last ? (run.model.tied ? 1 : 2) : (first || last ? 1 : 0);
    most = std::max(most, static_cast<double>(run.layers_of_stage(stage)) * run.model.layer_weights() + tables * table);
  }
  return most / static_cast<double>(run.tensor);
}

BlockTimes block_times(const RunFeatures& run, const Constants& constants) {
  return {.layer = layer_time(run, constants),
          .head = head_time(run, constants),
          .embedding = embedding_time(run, constants)};
}

double jitter_of(const RunFeatures& run, const Constants& constants, double seconds) {
  return constants.jitter * std::max(0.0, std::log2(static_cast<double>(run.gpus) / 8)) * seconds;
}

StepParts step_time(const RunFeatures& run, const Constants& constants) {
  return step_time(run, constants, block_times(run, constants));
}

StepParts step_time(const RunFeatures& run, const Constants& constants, const BlockTimes& blocks) {
  const StageTimes times = stage_times(run, blocks);
  const auto m = static_cast<double>(run.micro_batches());
  const auto p = static_cast<double>(run.pipeline);
  const auto v = static_cast<double>(run.chunks);
  const double mean = times.mean(run.pipeline);
  PassTime all = m * times.forward;
  all += m * times.backward;
  StepParts parts{.compute = all.compute,
                  .recompute = all.recompute,
                  .tensor = all.tensor,
                  .context = all.context,
                  .imbalance = m * (times.slowest - mean),
                  .host = all.host};
  parts.bubble = run.chunks > 1 ? (p - 1) / v * mean : times.sum - times.slowest;
  if (run.pipeline > 1) {
    const double message = message_time(run, constants);
    const double seen = run.pipeline_overlaps ? constants.overlapped_p2p : constants.blocking_p2p;
    parts.messages = 2 * (m * v + p - 1) * (seen * message) + m * v * constants.visit_s;
  }
  const DataCalls calls = data_calls(run, constants, times.weights);
  parts.data = run.sharding == Sharding::fsdp ? exposed_fsdp(run, times, calls) : exposed_data(run, times, calls);
  parts.optimizer = optimizer_time(run, constants, times.weights);
  parts.jitter = jitter_of(run, constants, parts.total());
  return parts;
}

}  // namespace megalith::plan
