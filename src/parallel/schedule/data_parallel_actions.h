#pragma once

#include "parallel/schedule/schedule.h"

namespace megalith::parallel {

// How long a rank holds the whole weights of a chunk.
enum class WeightLife {
  run,   // always
  step,  // gathered before the first use in a step: the optimizer is sharded, each rank has updated its part
  use,   // and given up after each use: weights are sharded too, and gradients, which each micro batch reduces
};

// Adds the traffic of data parallelism to a schedule: gathers one use ahead, and the reduction of each bucket behind
// the last backward that adds to it. `chunks_of_buckets`: see Placement.
Schedule with_data_parallel(const Schedule& schedule, WeightLife life, const std::vector<int64_t>& chunks_of_buckets);

}  // namespace megalith::parallel
