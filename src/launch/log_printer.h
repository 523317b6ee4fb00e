#pragma once

#include <functional>

#include "launch/cluster.h"

namespace megalith::launch {

// Prints the log of a launch whose folder holds it, or that of one rank, to standard output. `has_ended` is asked now
// and then while it follows.
void print_log(const LaunchRecord& record, const LogOptions& options, const std::function<bool()>& has_ended);

// The log of one rank, which training writes into the run directory; empty where there is none.
std::filesystem::path log_of_rank(const LaunchRecord& record, int64_t rank);

}  // namespace megalith::launch
