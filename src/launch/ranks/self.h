#pragma once

#include <string>
#include <vector>

#include "config/environment/environment.h"
#include "core/tensor.h"

namespace megalith::launch {

// Where the ranks that one process launches on its machine stand in the whole run.
struct LaunchPlace {
  int machine = 0;
  int machines = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;  // 0: any that is free
};

// One machine, or that of this process among those that a launcher has started one process on each. User error where
// it has started several on this one.
LaunchPlace launch_place(const config::Lookup& environment = config::process_environment);

struct SelfLaunch {
  int ranks = 1;  // on this machine
  LaunchPlace place = {};
  Device device = Device::cpu;                // where the ranks compute
  std::vector<std::string> more_arguments{};  // after the verb, before the rest, which has the last word
  bool ranks_save = false;                    // as LocalLaunch says
};

// Runs this program again, with its own arguments less --nproc, as the ranks of this machine. The exit code to answer
// (docs/design.md, section 7): that of the ranks, 1 for one that a signal ended, and 130 for a second SIGINT.
int launch_self(const SelfLaunch& launch);

// The arguments without `--nproc N` or `--nproc=N`.
std::vector<std::string> without_nproc(const std::vector<std::string>& arguments);

}  // namespace megalith::launch
