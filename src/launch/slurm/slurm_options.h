#pragma once

#include <string>
#include <vector>

#include "launch/launch.h"

namespace megalith::launch {

// Options of the #SBATCH lines, but for those in which the stages of a launch differ.
std::vector<std::string> sbatch_options(const Launch& launch);
// srun with its options, for so many tasks on a node.
std::vector<std::string> srun_words(const Launch& launch, int64_t tasks_per_node);
// A command as srun is given it: after the shell files that the profile names.
std::vector<std::string> task_command(const Profile& profile, std::vector<std::string> command);

// Whether each rank is a task of Slurm, or each node.
bool one_task_per_rank(const Launch& launch);
// Seconds before the time limit at which training stops and saves.
int64_t save_margin(const Profile& profile);

// One option as a #SBATCH line takes it, quoted where needed. User error for what such a line cannot carry.
std::string sbatch_quoted(const std::string& option);

}  // namespace megalith::launch
