#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/process/launcher_line.h"
#include "core/process/status_reader.h"
#include "resilience/monitor/node_folders.h"
#include "resilience/record/roster.h"

namespace megalith::resilience {

// The processes of one run on one node: starts them, finds again those that a monitor before this one has started,
// watches and ends them. Another process is never touched, whatever number it has: each is known by number and start
// time, and signalled through a descriptor of its own.
class NodeProcesses {
 public:
  // Finds again what `folders` remember.
  NodeProcesses(NodeFolders folders, std::string run);
  ~NodeProcesses();
  NodeProcesses(const NodeProcesses&) = delete;
  NodeProcesses& operator=(const NodeProcesses&) = delete;

  struct Start {
    std::vector<std::string> command;
    std::vector<std::string> environment;  // "NAME=value"
    std::string secret;                    // goes over the inherited line
  };
  // Nothing for one that was started before, also where it has ended. It outlives this process and writes to a log of
  // its own.
  void start(const ProcessKey& key, const Start& start);
  bool has(const ProcessKey& key) const { return processes_.contains(key); }
  bool is_running(const ProcessKey& key) const;
  // The line to a process that this object has started, for as long as it is open; null: there is none.
  LauncherLine* line(const ProcessKey& key);

  // Looks at all of them: who has ended, what pages say. `overslept`: seconds for which nobody could have looked. True
  // if one has ended since the last time.
  bool watch(double overslept);
  // Of the newest generation here, and what runs of older ones.
  std::vector<RankReport> reports(bool with_proc) const;

  void kill_up_to(int64_t generation);
  bool is_clear_of(int64_t generation) const;
  // Also those that start later in this generation.
  void ask_to_stop(int64_t generation);
  // Forgets what has ended of generations before this one, but for its logs.
  void forget_before(int64_t generation);

 private:
  struct Tracked;

  void adopt(const ProcessKey& key, const ProcessIdentity& process);
  void collect_end(Tracked& tracked);
  void read_page(Tracked& tracked, double overslept);

  NodeFolders folders_;
  std::string run_;
  std::map<ProcessKey, std::unique_ptr<Tracked>> processes_;
  int64_t stopping_ = 0;  // generation that is asked to stop; 0: none
};

}  // namespace megalith::resilience
