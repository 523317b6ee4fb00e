#pragma once

#include "cli/verbs.h"

namespace megalith::cli {

// launch_follow.cpp: what follows a launch by its name.
void add_launch_list(CLI::App& launch, Action& run);
void add_launch_status(CLI::App& launch, Action& run);
void add_launch_logs(CLI::App& launch, Action& run);
void add_launch_stop(CLI::App& launch, Action& run);
void add_launch_remove(CLI::App& launch, Action& run);

}  // namespace megalith::cli
