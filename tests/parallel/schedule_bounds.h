#pragma once

#include <algorithm>
#include <vector>

#include "parallel/layout.h"
#include "parallel/schedule/schedule.h"

// What a schedule holds at once: as its formula says, and as counted.

namespace megalith::parallel::testing {

// Pairs of (chunk, micro batch) whose activations `stage` holds at once at the most.
inline int64_t chunks_alive(const Layout& layout, int64_t stage, int64_t micro_batches) {
  const int64_t stages_after = layout.pipeline - stage - 1;
  if (layout.schedule == PipelineSchedule::zero_bubble) return std::min(micro_batches, layout.pipeline);
  if (layout.chunks == 1) return std::min(micro_batches, stages_after + 1);
  // Interleaved 1F1B warms up with all but the last of these.
  const int64_t warm = 2 * stages_after + (layout.chunks - 1) * layout.pipeline + 1;
  return std::min(micro_batches * layout.chunks, warm);
}

// Tensors that wait on a rank at the most, received and not yet taken in by their forward or backward.
inline int64_t receive_buffers(const Schedule& schedule) {
  std::vector<Transfer> waiting;
  size_t most = 0;
  for (const Action& action : schedule) {
    waiting.insert(waiting.end(), action.receives.begin(), action.receives.end());
    most = std::max(most, waiting.size());
    if (!is_compute(action) || action.kind == ActionKind::backward_weight) continue;
    const Payload input = action.kind == ActionKind::forward ? Payload::activation : Payload::gradient;
    std::erase_if(waiting, [&](const Transfer& transfer) {
      return transfer.payload == input && transfer.chunk == action.chunk && transfer.micro_batch == action.micro_batch;
    });
  }
  return static_cast<int64_t>(most);
}

}  // namespace megalith::parallel::testing
