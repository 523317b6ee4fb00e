#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace megalith {

// A process that cannot be taken for a later one of the same number.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // when it began, in clock ticks since the machine did

  bool operator==(const ProcessIdentity&) const = default;
};

ProcessIdentity own_process();
// Nothing where there is no such process.
std::optional<ProcessIdentity> identify_process(pid_t pid);
// Whether it has not ended; one that waits for its parent to hear of its end has.
bool is_alive(const ProcessIdentity& process);

struct ThreadFacts {
  pid_t id = 0;
  std::string name;
  char state = '?';          // R running, S sleeping, D uninterruptible, T stopped, t traced, Z ended, as proc(5) says
  std::string wait_channel;  // where in the kernel it sleeps; empty: it does not, or that cannot be read
  std::string kernel_stack;  // empty without the right to read it

  bool operator==(const ThreadFacts&) const = default;
};

// What the kernel knows of a process, for who has to find out why it does not move.
struct ProcessFacts {
  char state = '?';                  // of the thread that began it
  double cpu_seconds = 0.0;          // user and system, all threads
  std::vector<ThreadFacts> threads;  // at most kMostThreads, the first one first

  static constexpr size_t kMostThreads = 256;
};
// Nothing where it has ended.
std::optional<ProcessFacts> facts_of(const ProcessIdentity& process);

// "S in futex_wait_queue, 12.31 s of CPU; 4 threads: ...", with stacks of those that do not run.
std::string describe(const ProcessFacts& facts);

}  // namespace megalith
