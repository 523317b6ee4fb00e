#pragma once

#include <string>
#include <vector>

#include "launch/launch.h"

namespace megalith::cli {

constexpr int64_t kMostProcesses = 1 << 20;  // of each number that a launch is given: nodes, tasks, workers

struct LaunchOptions {
  std::string kind;  // slurm, kubernetes, local
  std::string cluster;
  std::vector<std::string> set;
  std::string name;
  int64_t nodes = 0;                // 0: as the recipe says
  int64_t ranks = 0;                // of each node; 0: as the command or the recipe says
  int64_t array = 0;                // tasks of a stage; 0: one per node
  std::vector<std::string> stages;  // NAME=NODESxWORKERS
  std::string time;
  int64_t chain = 1;
  std::vector<std::string> after;  // names of launches that must have ended well
  bool render = false;
  bool check = false;
  bool diff = false;
  bool values = false;  // prints those of the chart
  std::vector<std::string> command;
};

struct LaunchDraft {
  launch::Launch launch;
  std::vector<std::string> problems;   // why it cannot run
  std::vector<std::string> unchecked;  // what this machine cannot see
  bool is_complete = false;            // the run that it would continue has nothing left to do
};

// The profile that the options name, or the one that holds where they name none.
launch::Profile profile_of(const LaunchOptions& options);

// From the command line to a launch, with every reason why it cannot run that can be found without asking the cluster.
LaunchDraft draft_launch(const LaunchOptions& options);

}  // namespace megalith::cli
