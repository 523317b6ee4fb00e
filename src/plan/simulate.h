#pragma once

#include <functional>

#include "parallel/schedule/schedule.h"

namespace megalith::plan {

// Seconds, or any unit, that an action of a stage takes.
using DurationOf = std::function<double(int64_t stage, const parallel::Action& action)>;

struct SimulationOptions {
  DurationOf duration;
  // Compute waits for every send_receive before it, as a rank does that cannot overlap the two.
  bool transfers_block = false;
};

struct Span {
  size_t action = 0;  // index in the stage's schedule
  double start = 0.0;
  double end = 0.0;
};

struct StageTimeline {
  std::vector<Span> spans;  // one per action
  double busy = 0.0;        // with compute
  // Micro batches whose activations are held at once: of each chunk, and pairs of chunk and micro batch of all chunks.
  std::vector<int64_t> chunk_alive;
  int64_t alive = 0;
};

struct Simulation {
  std::vector<StageTimeline> stages;
  double duration = 0.0;

  // Share of the time in which stages compute nothing.
  double bubble_fraction() const;
};

// Runs the schedules of all stages together as Schedule describes. An internal error where a transfer has no
// counterpart, a compute lacks its input, or ranks wait for each other in a circle.
Simulation simulate(const std::vector<parallel::Schedule>& schedules, const SimulationOptions& options);

}  // namespace megalith::plan
