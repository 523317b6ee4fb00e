#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/nodes/part_server.h"
#include "resilience/monitor/monitor_logic.h"
#include "resilience/monitor/node_processes.h"
#include "resilience/record/control_directory.h"
#include "train/run/tiers.h"

namespace megalith::resilience {

struct NodeOptions {
  std::filesystem::path run_directory;
  std::string run;  // its id
  std::string node;
  std::string address = "127.0.0.1";  // of the node, as the others reach it
  NodeFolders folders;
  std::string failpoints;  // for its ranks: from the monitor's own command line, nobody else's word
};

// The node itself: what a monitor's orders do. It runs nothing but this very program, with `train` and the config of
// the roster in the run directory, checked as a user's words are, and with a fixed list of variables.
class Node final : public NodeHost {
 public:
  explicit Node(NodeOptions options);

  int64_t newest_term() const override;
  std::optional<Roster> newest_roster() const override;
  std::vector<RankReport> processes(bool with_proc) override { return processes_.reports(with_proc); }
  void start_rank(const Roster& roster, int64_t rank, const Place& store, const std::vector<Holder>& holders) override;
  Place serve_store(const Roster& roster) override;
  void kill_up_to(int64_t generation) override { processes_.kill_up_to(generation); }
  // True only once nothing of them is left, at once.
  bool is_clear_of(int64_t generation) override;
  void ask_to_stop(int64_t generation) override { processes_.ask_to_stop(generation); }
  std::vector<Holding> holdings() override;
  Place holder_place() override;
  CheckOutcome check(std::string& evidence) override;

  // Every 100 ms: true if a process has ended.
  bool watch(double overslept) { return processes_.watch(overslept); }
  // Of the newest generation: every rank here has ended, and said that it was done or saved. Nothing: some have not.
  std::optional<bool> all_done_or_stopped() const;
  // The run is over: nothing is left of it but what it saved, where it is complete but what it saved on shared storage.
  void clear(bool is_complete);

 private:
  struct OfGeneration {
    int64_t generation = 0;
    train::Tiers tiers;
  };
  const train::Tiers* tiers();
  void write_config(const Roster& roster);
  std::vector<std::string> command_of(const Roster& roster) const;
  std::vector<std::string> environment_of(const Roster& roster, int64_t rank, const Place& store) const;
  std::vector<config::GenerationStart> lineage() const;

  NodeOptions options_;
  DiskControlDirectory control_;
  NodeProcesses processes_;
  std::optional<OfGeneration> places_;
  std::optional<train::RunMemory> memory_;  // keeps what ranks leave there, also while none runs
  std::unique_ptr<checkpoint::PartServer> server_;
};

// Of a roster, before a rank is started with them: user error for words that `train` would take for an option.
void check_overrides(const std::vector<std::string>& overrides);

}  // namespace megalith::resilience
