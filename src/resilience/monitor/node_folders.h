#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/process/process_facts.h"
#include "resilience/messages.h"

namespace megalith::resilience {

// A process that a monitor starts, by what it is in the run.
struct ProcessKey {
  int64_t generation = 0;
  int64_t rank = 0;  // or RankReport::kStore

  bool is_store() const { return rank == RankReport::kStore; }
  std::string name() const;  // g000003-r00005, g000003-store
  auto operator<=>(const ProcessKey&) const = default;
};
// Nothing for a name of another form.
std::optional<ProcessKey> process_key(const std::string& name);

// What a monitor keeps, to be found again by one that is started after it. Both directories are the node's own, and of
// this user alone.
struct NodeFolders {
  std::filesystem::path disk;    // logs
  std::filesystem::path memory;  // in a memory file system: who runs, status pages, how processes ended

  void make() const;

  std::filesystem::path log(const ProcessKey& key) const { return disk / "logs" / (key.name() + ".log"); }
  std::filesystem::path monitor_log() const { return disk / "logs" / "monitor.log"; }
  std::filesystem::path records() const { return memory / "processes"; }
  std::filesystem::path record(const ProcessKey& key) const { return records() / key.name(); }
  std::filesystem::path page(const ProcessKey& key) const { return memory / "pages" / key.name(); }
  std::filesystem::path store_place(int64_t generation) const;
  std::filesystem::path config(int64_t generation) const;
  std::filesystem::path holders(int64_t generation) const;
  std::filesystem::path ends() const { return memory / "ends"; }
  std::filesystem::path anchor() const { return memory / "anchor"; }
  std::filesystem::path anchor_lock() const { return memory / "anchor.lock"; }
  std::filesystem::path worker() const { return memory / "worker"; }
  std::filesystem::path worker_lock() const { return memory / "worker.lock"; }
  std::filesystem::path verdict() const { return memory / "verdict"; }  // the exit code with which a monitor was done
};

// Of the run in this directory, for all nodes of this machine: in /dev/shm, or a temporary directory where there is
// none.
std::filesystem::path memory_of_run(const std::filesystem::path& run_directory);

// Makes it, and a node's folder in it, for this user alone.
void make_memory_of_node(const std::filesystem::path& memory_of_run, const std::string& node);

// "RUN PID START": which process, of which run (of anchors and monitors: of which node). Readers find all of it or
// nothing.
void write_record(const std::filesystem::path& path, const std::string& run, const ProcessIdentity& process);
// Nothing where there is none, for one that is torn, and for one of another run.
std::optional<ProcessIdentity> read_record(const std::filesystem::path& path, const std::string& run);

}  // namespace megalith::resilience
