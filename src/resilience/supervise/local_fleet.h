#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/process/process_facts.h"
#include "resilience/monitor/node_folders.h"

namespace megalith::resilience {

struct LocalFleetOptions {
  std::filesystem::path run_directory;
  std::string run;               // its id
  std::filesystem::path nodes;   // where each node's disk is a folder
  std::filesystem::path memory;  // where each node's memory is one, and the socket
  std::filesystem::path socket;
  int64_t count = 1;  // nodes, spares included
  std::string failpoints;
};

// A whole fleet on one machine: nodes that are folders. A node whose folder is gone is lost, as a machine is that does
// not come back; with its folder it comes back, empty.
class LocalFleet {
 public:
  // Takes over what another supervisor has left running; where nothing runs, every node is there.
  explicit LocalFleet(LocalFleetOptions options);

  // Nothing ran when it was made.
  bool is_new() const { return is_new_; }
  std::vector<std::string> nodes() const;
  NodeFolders folders(const std::string& node) const;

  // Every 100 ms: starts the anchors of nodes that are there and have none, and takes leave of processes that ended.
  void tend();
  // Waits until every monitor has ended, at most so long, and then ends what is left.
  void end(double seconds);
  // Without saving: kills every process of the fleet.
  void kill();

 private:
  struct Member {
    std::string node;
    ProcessIdentity anchor;  // pid 0: none
    double started = 0.0;
    int short_lives = 0;
  };

  void start(Member& member);
  bool is_running(const Member& member) const;
  bool is_there(const Member& member) const;

  LocalFleetOptions options_;
  std::vector<Member> members_;
  bool is_new_ = true;
};

}  // namespace megalith::resilience
