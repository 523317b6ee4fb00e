#include "plan/step_time/run_features.h"

#include <fmt/format.h>

#include <numeric>

namespace megalith::plan {

double ModelShape::layer_weights() const {
  const auto h = static_cast<double>(hidden);
  const auto q = static_cast<double>(query_width());
  const auto kv = static_cast<double>(kv_width());
  return h * (q + 2 * kv) + q * h + static_cast<double>((gated ? 3 : 2) * ffn) * h;
}

double ModelShape::flops_per_sample() const {
  const auto n = static_cast<double>(layers);
  const auto s = static_cast<double>(length);
  const double weights = n * layer_weights() + static_cast<double>(vocabulary * hidden);
  return 6.0 * weights * s + 12.0 * n * static_cast<double>(query_width()) * s * s;
}

int64_t RunFeatures::layers_of_stage(int64_t stage) const {
  return stage_layers.empty() ? model.layers / pipeline : stage_layers[static_cast<size_t>(stage)];
}

double RunFeatures::tokens() const {
  return static_cast<double>(micro_batch * model.length) / static_cast<double>(context);
}

int64_t RunFeatures::scale_up() const {
  return gpu.domain > gpu.per_node ? gpu.domain : gpus_per_node;
}

std::string layout_problem(const RunFeatures& run) {
  const ModelShape& m = run.model;
  const double ranks = static_cast<double>(run.tensor) * static_cast<double>(run.pipeline) *
                       static_cast<double>(run.context) * static_cast<double>(run.data);
  if (ranks != static_cast<double>(run.gpus))
    return fmt::format("tensor {} x pipeline {} x context {} x data {} are not {} GPUs", run.tensor, run.pipeline,
                       run.context, run.data, run.gpus);
  if (run.global_batch % run.data != 0 || run.global_batch / run.data % run.micro_batch != 0)
    return fmt::format("global batch {} does not divide into micro batches of {} on {} data-parallel ranks",
                       run.global_batch, run.micro_batch, run.data);
  if (m.heads % run.tensor != 0) return fmt::format("tensor {} does not divide {} heads", run.tensor, m.heads);
  if (m.ffn % run.tensor != 0) return fmt::format("tensor {} does not divide an MLP of {}", run.tensor, m.ffn);
  if (m.length % run.context != 0) return fmt::format("context {} does not divide {} tokens", run.context, m.length);
  if (m.kv_heads > m.heads) return fmt::format("{} key heads are more than {} heads", m.kv_heads, m.heads);
  if (run.fp8 && !run.gpu.fp8_tflops) return fmt::format("{} has no fp8", run.gpu.name);
  if (run.chunks > 1 && run.pipeline == 1 && run.sharding != Sharding::fsdp)
    return fmt::format("{} chunks need more than one stage", run.chunks);
  if (run.stage_layers.empty()) {
    if (m.layers % (run.pipeline * run.chunks) != 0)
      return fmt::format("{} layers do not divide into {} stages of {} chunks", m.layers, run.pipeline, run.chunks);
    return {};
  }
  const int64_t in_stages = std::accumulate(run.stage_layers.begin(), run.stage_layers.end(), int64_t{0});
  if (static_cast<int64_t>(run.stage_layers.size()) != run.pipeline || in_stages != m.layers)
    return fmt::format("stage_layers names {} stages with {} layers, and there are {} with {}", run.stage_layers.size(),
                       in_stages, run.pipeline, m.layers);
  return {};
}

}  // namespace megalith::plan
