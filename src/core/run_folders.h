#pragma once

// Folders of a run directory that more than one room knows.
namespace megalith {

constexpr const char* kControlFolder = "control";  // rosters and journals of the run's supervisors
constexpr const char* kLaunchFolder = "launch";    // what was submitted to a cluster, by name

}  // namespace megalith
