#pragma once

#include <cstdint>
#include <vector>

namespace megalith::parallel {

enum class ActionKind { forward, backward };

// One thing a rank does in a step, on one chunk of the model and one micro batch.
struct Action {
  ActionKind kind = ActionKind::forward;
  int64_t chunk = 0;
  int64_t micro_batch = 0;
};

// What a rank does in one step, in order: data that the trainer executes and tests read.
using Schedule = std::vector<Action>;

// The whole model on one rank: each micro batch forward, then backward, so that one set of activations is alive.
Schedule single_stage_schedule(int64_t micro_batches);

}  // namespace megalith::parallel
