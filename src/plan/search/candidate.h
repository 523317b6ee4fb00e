#pragma once

#include "config/run_config.h"
#include "parallel/layout.h"
#include "plan/step_time/run_features.h"

namespace megalith::plan {

// GPUs that a run is planned for.
struct Cluster {
  cost::Accelerator gpu;
  cost::Network network;
  int64_t gpus = 1;
  std::shared_ptr<const comm::Wire> wire = {};  // calls as they were measured there; absent: by data sheets

  int64_t gpus_per_node() const { return std::min(gpus, gpu.per_node); }
  int64_t nodes() const { return gpus / gpus_per_node(); }
};

// A way to lay out a run.
struct Candidate {
  parallel::Layout layout;  // chunks are those of the config: 1 where weights are sharded
  int64_t micro_batch = 1;
  config::Granularity recompute = config::Granularity::none;
};

Candidate candidate_of(const config::Run& run);
// The run on these GPUs, laid out like this.
config::Run with_candidate(config::Run run, const Cluster& cluster, const Candidate& candidate);

// What the run's own program, Megalith, does: no overlap of tensor- and context-parallel collectives, overlap of the
// others, kernels launched from C++.
RunFeatures features_of(const config::Run& run, int64_t padded_vocabulary, const Cluster& cluster,
                        const Candidate& candidate);

}  // namespace megalith::plan
