#include "parallel/schedule/pipeline_order.h"

#include <algorithm>

namespace megalith::parallel {

namespace {

// `warm` forwards, then a forward and a backward in turn, then the backwards that are left.
template <class Forward, class Backward>
void alternate(int64_t count, int64_t warm, const Forward& forward, const Backward& backward) {
  for (int64_t i = 0; i < warm; ++i) forward(i);
  for (int64_t i = 0; i < count; ++i) {
    if (warm + i < count) forward(warm + i);
    backward(i);
  }
}

Schedule one_forward_one_backward(const Layout& layout, int64_t stage, int64_t micro_batches) {
  Schedule order;
  alternate(
      micro_batches, std::min(micro_batches, layout.pipeline - stage - 1),
      [&](int64_t i) { order.push_back({.kind = ActionKind::forward, .micro_batch = i}); },
      [&](int64_t i) { order.push_back({.kind = ActionKind::backward, .micro_batch = i}); });
  return order;
}

// Narayanan et al. 2021 (arXiv 2104.04473), in Megatron's order: groups of as many micro batches as there are stages go
// through chunk 0, then chunk 1, ...; backward through the chunks in reverse. Where the last group is not full its gaps
// stay idle time.
Schedule interleaved(const Layout& layout, int64_t stage, int64_t micro_batches) {
  const int64_t group = layout.pipeline;
  const int64_t count = round_up(micro_batches, group) * layout.chunks;
  const int64_t warm = std::min(count, 2 * (layout.pipeline - stage - 1) + (layout.chunks - 1) * group);
  Schedule order;
  const auto add = [&](ActionKind kind, int64_t i) {
    const int64_t chunk = i / group % layout.chunks;
    const int64_t micro_batch = i / (group * layout.chunks) * group + i % group;
    if (micro_batch >= micro_batches) return;
    order.push_back({.kind = kind,
                     .chunk = kind == ActionKind::forward ? chunk : layout.chunks - 1 - chunk,
                     .micro_batch = micro_batch});
  };
  alternate(
      count, warm, [&](int64_t i) { add(ActionKind::forward, i); }, [&](int64_t i) { add(ActionKind::backward, i); });
  return order;
}

// ZB-H1 of Qi et al. 2023 (arXiv 2401.10241): 1F1B whose backward makes the input's gradient at once and the weights'
// `stage` micro batches later, so that every stage holds as many activations as the first one does in 1F1B.
Schedule zero_bubble(const Layout& layout, int64_t stage, int64_t micro_batches) {
  Schedule order;
  const auto add = [&](ActionKind kind, int64_t i) { order.push_back({.kind = kind, .micro_batch = i}); };
  const auto backward = [&](int64_t i) {
    add(ActionKind::backward_input, i);
    if (i >= stage) add(ActionKind::backward_weight, i - stage);
  };
  alternate(
      micro_batches, std::min(micro_batches, layout.pipeline - stage - 1),
      [&](int64_t i) { add(ActionKind::forward, i); }, backward);
  for (int64_t i = std::max<int64_t>(0, micro_batches - stage); i < micro_batches; ++i)
    add(ActionKind::backward_weight, i);
  return order;
}

}  // namespace

Schedule pipeline_order(const Layout& layout, int64_t stage, int64_t micro_batches) {
  if (layout.schedule == PipelineSchedule::zero_bubble) return zero_bubble(layout, stage, micro_batches);
  if (layout.chunks > 1) return interleaved(layout, stage, micro_batches);
  return one_forward_one_backward(layout, stage, micro_batches);
}

}  // namespace megalith::parallel
