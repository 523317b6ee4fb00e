#pragma once

#include <string>
#include <vector>

#include "launch/cluster.h"

namespace megalith::launch {

// What `launch status` says: where the launch stands, why it waits, how far the run is, and its last starts and ends.
// `states` is empty where the cluster could not be asked; `trouble` says why.
std::string describe_status(const LaunchRecord& record, const std::vector<JobState>& states,
                            const std::string& trouble);

// The same in a few words, for a list: "running on n[1-2]", "ended: complete".
std::string state_in_words(const LaunchRecord& record, const std::vector<JobState>& states);

// A job of it waits or runs.
bool is_alive(const std::vector<JobState>& states);

// The states of a launch; where it is known to have ended the cluster is not asked.
std::vector<JobState> states_of(const LaunchRecord& record);

}  // namespace megalith::launch
