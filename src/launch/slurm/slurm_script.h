#pragma once

#include <string>
#include <vector>

#include "launch/launch.h"

namespace megalith::launch {

// The batch script of a launch: what `sbatch` is given, and what a person can submit without Megalith.
std::string slurm_script(const Launch& launch);

// What the script cannot carry, or Slurm would not take.
std::vector<std::string> slurm_script_problems(const Launch& launch);

}  // namespace megalith::launch
