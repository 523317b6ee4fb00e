#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "resilience/decide/state.h"
#include "resilience/sense/deadlines.h"
#include "resilience/sense/suspects.h"

namespace megalith::resilience {

// A guard that only tests of the simulation take out, to see that its invariant then breaks.
struct SensorGuards {
  bool needs_proof = true;  // a silent monitor alone is none
};

// Turns reports and the passing of time into facts, each with its evidence. It reads the controller's state and changes
// nothing of it. Times are seconds on the run's axis.
class Sensor {
 public:
  Sensor(const RunState& state, const SensorGuards& guards = {});

  enum class Verdict { taken, stale, stranger };
  // A stale report comes from an earlier monitor process, or was overtaken; a stranger is a second node of that name.
  Verdict take(const Report& report, double now, std::vector<Fact>& facts);
  // The node's session has broken. A monitor that lives dials again at once.
  void lost_session(const std::string& node, double now);
  // About once a second, and when a look is due: a rank's or a node's time has run out, or every node has said what it
  // then finds in /proc.
  bool look_is_due(double now) const { return now >= std::min(hangs_due_, silence_due_); }
  void look(double now, std::vector<Fact>& facts);

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Node {
    int64_t session = 0;
    std::string boot_id;
    int64_t sequence = 0;
    double heard = 0.0;
    double broken = kNever;  // when its session broke after that
  };
  struct Rank {
    RankReport report;
    bool is_known = false;    // a report had it
    bool is_missing = false;  // a later one has not
    bool is_told = false;     // that it ended
  };

  void watch_generation();
  void take_ranks(const Report& report);
  void learn(const RankReport& rank);
  void tell_ends(size_t first, size_t count, double now, std::vector<Fact>& facts);
  void tell_store(double now, std::vector<Fact>& facts);
  void tell_progress(double now, std::vector<Fact>& facts);
  void tell_silence(double now, std::vector<Fact>& facts);
  void tell_hangs(double now, std::vector<Fact>& facts);
  void tell_lost_nodes(double now, std::vector<Fact>& facts);
  void tell_learned(double now, std::vector<Fact>& facts);

  bool accepts_faults() const;
  const RosterNode* member(const std::string& node) const;  // null: it has no ranks
  bool is_heard(const std::string& node) const;
  bool is_alive(const Rank& rank) const { return rank.is_known && !rank.report.end && !rank.is_missing; }
  double quiet(const Rank& rank, double now) const;
  bool is_overdue(const Rank& rank, double now) const;
  double deadline(const Rank& rank, const std::string& node) const;
  bool stands_still(double now) const;
  std::vector<RankView> views(double now) const;
  Fact fault(Symptom symptom, double now, std::string evidence) const;
  Fact fault_of_end(int64_t number, const Rank& rank, double now) const;

  const RunState& state_;
  SensorGuards guards_;
  Deadlines deadlines_;
  std::map<std::string, Node> nodes_;
  int64_t generation_ = -1;
  std::map<std::string, const RosterNode*> members_;  // of that generation
  std::vector<Rank> ranks_;                           // of that generation, by number
  Rank store_;
  bool store_told_ = false;
  double store_ended_ = -1.0;
  std::set<std::string> call_failed_told_;  // nodes whose ranks have said so
  std::set<std::string> named_gone_;        // nodes whose ranks were named by failed calls
  std::set<std::string> gone_told_;
  int64_t done_step_ = -1;             // that the world has done in this generation
  double done_at_ = -1.0;              // when that was seen
  double inspected_ = -1.0;            // when /proc was asked for; -1: it was not
  std::set<std::string> inspections_;  // nodes that have answered
  size_t inspected_nodes_ = 0;         // that were asked
  double hangs_due_ = kNever;
  double silence_due_ = kNever;
  double told_step_deadline_ = 0.0;
  double told_save_deadline_ = 0.0;
};

}  // namespace megalith::resilience
