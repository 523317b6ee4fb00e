#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/world.h"

namespace megalith::comm {

// How a rank's process ended.
struct Outcome {
  int status = 0;    // as waitpid gives it
  std::string text;  // what its body returned, or the message of what it threw

  bool ok() const { return status == 0; }
};

struct ProcessRun {
  int ranks = 1;
  double start_deadline = 60.0;
  std::function<std::unique_ptr<World>(const JoinOptions&)> join = join_gloo;
  std::function<std::string(World&)> body;
  // Called in the parent while they run.
  std::function<void(const std::vector<pid_t>&)> meanwhile;
};

// Returns when the child has ended, and leaves it to be waited for.
void await_end(pid_t process);

// Forks one process per rank and a further one for the store; waits for all of them.
std::vector<Outcome> run_processes(const ProcessRun& run);

}  // namespace megalith::comm
