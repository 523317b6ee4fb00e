#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "resilience/messages.h"
#include "resilience/record/roster.h"

namespace megalith::resilience::testing {

// What really happens in the simulated run: processes that train in step, and what their nodes keep. Monitors see it
// through their hosts; the supervisor sees what monitors report.

struct Process {
  int64_t generation = 0;
  int64_t rank = 0;  // RankReport::kStore
  size_t node = 0;
  int64_t pid = 0;
  double began = 0.0;
  std::optional<ProcessEnd> end;
  Ending ending;
  double ends_at = -1.0;  // it will, with what `ending` says; -1: not by itself
  double hangs_since = -1.0;
  bool is_unkillable = false;
  bool is_lost = false;  // its machine died

  bool is_alive() const { return !end && !is_lost; }
  bool is_store() const { return rank == RankReport::kStore; }
};

enum class Stage { boot, rendezvous, load, steps, over };

// The processes of one roster.
struct Generation {
  Roster roster;
  std::vector<Process*> ranks;  // by number; null: not started
  Process* store = nullptr;
  Stage stage = Stage::boot;
  double stage_began = 0.0;
  std::array<double, kSections> longest{};  // as in PageReport
  int64_t step = 0;                         // that is being done
  double step_began = 0.0;
  double moved = 0.0;        // when anybody beat last
  bool has_trouble = false;  // something has happened for which a restart is right
  bool peers_notice = true;  // of a dead rank
  bool was_asked_to_stop = false;
};

struct FakeRunOptions {
  double step_seconds = 1.0;
  int64_t steps = 60;
  int64_t ranks_per_node = 2;
  bool crashes_in_first_step = false;
  int64_t persistent_interval = 10;
};

class FakeRun {
 public:
  FakeRun(FakeRunOptions options, size_t nodes, std::mt19937_64& random);

  void advance(double now);

  Generation& generation_of(const Roster& roster);
  Generation* find(int64_t generation);
  Generation* newest() { return generations_.empty() ? nullptr : &generations_.rbegin()->second; }
  Process& start(size_t node, const Roster& roster, int64_t rank, double now);
  void kill(Process& process, int64_t signal, double now);
  void lose_node(size_t node, double now);
  std::vector<Process*>& processes_on(size_t node) { return on_node_[node]; }
  std::vector<Holding> holdings_on(size_t node) const;
  PageReport page_of(const Process& process, double now);
  // Something on this node has ended otherwise than it should.
  bool had_trouble(size_t node) const { return troubled_.contains(node); }
  double done_at() const { return done_at_; }
  int64_t steps_done() const { return steps_done_; }
  const FakeRunOptions& options() const { return options_; }

 private:
  double uniform(double low, double high) { return std::uniform_real_distribution<>(low, high)(random_); }
  bool all(const Generation& generation, bool (*condition)(const Process&)) const;
  void advance(Generation& generation, double now);
  void begin_stage(Generation& generation, Stage stage, double now);
  void end_all(Generation& generation, EndingKind kind, double now);
  void load(Generation& generation, double now);
  void keep_step(Generation& generation);
  void let_peers_notice(Generation& generation, double now);
  void finish_ends(Generation& generation, double now);

  FakeRunOptions options_;
  std::mt19937_64& random_;
  std::map<int64_t, Generation> generations_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::vector<Process*>> on_node_;
  std::vector<std::vector<Holding>> memory_;  // by node
  std::vector<Holding> persistent_;
  std::set<size_t> troubled_;
  int64_t next_pid_ = 1000;
  int64_t steps_done_ = 0;
  double done_at_ = -1.0;
};

}  // namespace megalith::resilience::testing
