#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "config/run_config.h"

namespace megalith::config {

// One of several processes that share work.
struct Worker {
  int64_t index = 0;
  int64_t count = 1;

  bool operator==(const Worker&) const = default;
};

// The share that Slurm gives to this process: tasks of a job array (SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP) times
// tasks of a step (SLURM_PROCID, SLURM_NTASKS). Nothing outside of Slurm. In a batch script without srun there is one
// process whatever SLURM_NTASKS says: no step has begun. User error for values that make no sense.
std::optional<Worker> worker_from_environment();

// The file of GPU plans that the runs of this user share: trainer.plan_cache, or plans.json in the user's cache folder
// (XDG_CACHE_HOME, HOME). Empty where none is to be kept.
std::filesystem::path plan_cache_file(const Trainer& trainer);

}  // namespace megalith::config
