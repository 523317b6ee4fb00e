#pragma once

#include <string>
#include <vector>

#include "launch/launch.h"

namespace megalith::launch {

// The batch script of a launch with stages. It is submitted once for each, with the stage's name as its argument.
std::string slurm_stages_script(const Launch& launch);

// In what the stages differ: options of sbatch. `after` are the ids of jobs that must have ended well.
std::vector<std::string> stage_options(const Launch& launch, const Stage& stage, const std::vector<std::string>& after);

}  // namespace megalith::launch
