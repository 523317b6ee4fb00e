#include "plan/search/preference.h"

#include <algorithm>
#include <tuple>

namespace megalith::plan {

namespace {

constexpr int64_t kGib = int64_t{1} << 30;

// Which of the bytes that a rank of a group sends leave its node: of a ring's ranks on a node one sends to the next
// node, for all of them.
double leaving(const RunFeatures& run, int64_t members, int64_t stride, double bytes) {
  const int64_t on_node = std::clamp<int64_t>(run.scale_up() / stride, 1, members);
  return on_node == members ? 0.0 : bytes / static_cast<double>(on_node);
}

double of_others(int64_t members) {
  return static_cast<double>(members - 1) / static_cast<double>(members);
}

auto order_of(const PlannedLayout& layout) {
  return std::tuple{layout.memory.total() / kGib, bytes_between_nodes(layout.features), layout.features.pipeline,
                    layout.candidate.recompute};
}

}  // namespace

double bytes_between_nodes(const RunFeatures& run) {
  const auto m = static_cast<double>(run.micro_batches());
  const double layers = static_cast<double>(run.model.layers) / static_cast<double>(run.pipeline);
  const double activations = 2 * run.tokens() * static_cast<double>(run.model.hidden);
  const double kept = run.sequence_parallel ? activations / static_cast<double>(run.tensor) : activations;
  const double key_values =
      4 * run.tokens() * static_cast<double>(run.model.kv_width()) / static_cast<double>(run.tensor);
  const double weights = weights_of_rank(run);
  // Gathers and reductions in both passes, and inputs gathered again (wire_time.cpp).
  const double tensor_calls = run.sequence_parallel ? 10 : 8;
  const int64_t replicas = run.replicas();
  const auto gradients = static_cast<double>(run.gradient_bytes) * weights;
  const double data = run.sharding == Sharding::fsdp    ? m * (2 * 2 * weights + gradients)
                      : run.sharding == Sharding::zero1 ? 2 * weights + gradients
                                                        : 2 * gradients;
  return leaving(run, run.tensor, 1, m * layers * tensor_calls * activations * of_others(run.tensor)) +
         leaving(run, run.context, run.tensor, m * layers * 3 * key_values * static_cast<double>(run.context - 1)) +
         leaving(run, replicas, run.tensor, data * of_others(replicas)) +
         leaving(run, run.pipeline, run.gpus / run.pipeline, 2 * m * static_cast<double>(run.chunks) * kept);
}

std::string_view preferred_for(const PlannedLayout& a, const PlannedLayout& b) {
  const auto [memory, bytes, stages, recompute] = order_of(a);
  const auto [other_memory, other_bytes, other_stages, other_recompute] = order_of(b);
  if (memory != other_memory) return memory < other_memory ? "more free memory" : "";
  if (bytes != other_bytes) return bytes < other_bytes ? "fewer bytes between nodes" : "";
  if (stages != other_stages) return stages < other_stages ? "fewer stages" : "";
  return recompute < other_recompute ? "less recompute" : "";
}

void sort_by_time_and_preference(std::vector<PlannedLayout>& layouts, double longest) {
  const auto faster = [](const PlannedLayout& a, const PlannedLayout& b) { return a.seconds() < b.seconds(); };
  std::stable_sort(layouts.begin(), layouts.end(), faster);
  if (layouts.empty()) return;
  const double least = layouts[0].seconds();
  const auto ties_end = std::find_if(layouts.begin(), layouts.end(), [&](const PlannedLayout& layout) {
    return layout.seconds() > longest || !is_tie(layout.seconds(), least);
  });
  std::stable_sort(layouts.begin(), ties_end,
                   [](const PlannedLayout& a, const PlannedLayout& b) { return order_of(a) < order_of(b); });
}

}  // namespace megalith::plan
