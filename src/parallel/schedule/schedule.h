#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/layout.h"

namespace megalith::parallel {

enum class ActionKind {
  forward,
  backward,         // gradients of input and weights
  backward_input,   // the first half of it: what the stage before waits for
  backward_weight,  // the second half; activations are free after it
  send_receive,
  gather_weights,   // of a chunk, from the ranks that each hold a shard
  release_weights,  // back to the shard alone
  reduce_bucket,    // gradients over the ranks that hold the same weights
};

enum class Payload { activation, gradient };

// A tensor between neighbouring chunks of the model.
struct Transfer {
  Payload payload = Payload::activation;
  int64_t peer = 0;   // the stage at the other end
  int64_t chunk = 0;  // of this rank: the one that made it (sent) or takes it in (received)
  int64_t micro_batch = 0;

  bool operator==(const Transfer&) const = default;
};

// One thing a rank does in a step, on one chunk of the model and one micro batch.
struct Action {
  ActionKind kind = ActionKind::forward;
  int64_t chunk = 0;
  int64_t micro_batch = 0;
  size_t bucket = 0;                    // reduce_bucket: which
  bool reduces_buckets = false;         // backward: no other adds to the gradients; they may leave while it runs
  std::vector<Transfer> sends = {};     // send_receive: all of these travel at once,
  std::vector<Transfer> receives = {};  // at most one each way between two ranks

  bool operator==(const Action&) const = default;
};

// Forward or some part of backward.
bool is_compute(const Action& action);
// The gradients and activations of the chunk and micro batch are final after it.
bool ends_backward(const Action& action);

// What a rank does in one step, in order: data that the trainer executes and tests read.
//
// A send_receive starts when the compute before it is done and runs beside the compute after it; a forward or backward
// waits for the one that brings its input. The send_receives of a rank run one after the other, in lists that cannot
// wait for each other in a circle. Gathers and reductions run beside compute as well: a compute waits for the gather of
// its chunk, the end of the step for all. A bucket may be reduced as soon as backward has made its gradients: the list
// says when at the latest.
using Schedule = std::vector<Action>;

// All stages of the model on one rank: each micro batch forward through the chunks, then backward, so that one set of
// activations is alive.
Schedule single_stage_schedule(int64_t micro_batches, int64_t chunks = 1);

// Why no schedule of the layout has this many micro batches; empty when one has.
std::string schedule_problem(const Layout& layout, int64_t micro_batches);

// The schedules of all stages, with their transfers: 1F1B, interleaved 1F1B in Megatron's order where stages have
// several chunks, or ZB-H1. A user error where schedule_problem() has something to say.
std::vector<Schedule> pipeline_schedules(const Layout& layout, int64_t micro_batches);

// Forward alone, of each micro batch through all chunks.
std::vector<Schedule> evaluation_schedules(const Layout& layout, int64_t micro_batches);

}  // namespace megalith::parallel
