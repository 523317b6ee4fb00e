#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace megalith::launch {

// A process in a group of its own, without standard input.
struct ProcessStart {
  std::vector<std::string> command;      // the program, by path, and its arguments; /proc/self/exe is this program
  std::vector<std::string> environment;  // "NAME=value", on top of this process's own
  int output = -1;                       // descriptors
  int errors = -1;
  int line = -1;  // that the process inherits, its end of a LauncherLine; -1: none
  // False: it is told to end when this process does. True: it outlives this one, in a session of its own (the kernel
  // hangs up on a stopped process whose group loses its last parent), inherits no other descriptor and no blocked
  // signal, and runs only once its line holds something; it ends where this process goes before.
  bool is_detached = false;
};

// To be waited for by the caller. I/O error where there can be none.
pid_t start_process(const ProcessStart& start);

constexpr int kCannotRun = 127;  // the exit code of a process whose program could not be run, as shells say it

}  // namespace megalith::launch
