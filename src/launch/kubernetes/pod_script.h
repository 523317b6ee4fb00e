#pragma once

#include <string>

#include "launch/launch.h"

namespace megalith::launch {

constexpr const char* kPodScriptName = "job.sh";

// What every pod of a launch runs: its arguments as a command, and around them the journal.
std::string pod_script(const Launch& launch);

}  // namespace megalith::launch
