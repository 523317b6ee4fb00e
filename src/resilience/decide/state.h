#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "resilience/facts.h"
#include "resilience/messages.h"
#include "resilience/record/roster.h"
#include "resilience/settings.h"

namespace megalith::resilience {

// Where a run stands between two generations. A recovery goes through gather .. redo in this order; a new fault leads
// back to gather.
enum class RunPhase : uint8_t {
  gather,  // which faults belong together; also the beginning of a run
  stop,    // no process of the last generation is left
  check,   // of every node, from the workload restart on
  place,   // what the nodes hold, and who gets which ranks
  wait,    // for nodes
  claim,   // the roster
  start,   // the store, then the ranks
  join,    // until all ranks have met
  load,    // until all ranks step
  redo,    // until the world has done a step that no generation had done
  running,
  finish,  // the verdict goes to the nodes
  over,
};
constexpr int kRunPhases = 13;
const char* name_of(RunPhase phase);

struct NodeState {
  std::string address;
  std::string boot_id;
  bool is_heard = false;
  bool is_clean = false;            // it runs nothing of the generations that this recovery ends
  double since = 0.0;               // that it is heard, or silent
  std::string out;                  // why it may not take part; empty: it may
  bool returns_when_heard = false;  // it is out because it was gone
  double asked = -1.0;              // when it got the order of this phase; -1: it did not
  bool has_answered = false;        // that order
  double failed = -1.0;             // when it could not carry it out; -1: it could, or has not said
  std::vector<Holding> holdings;    // of the last Place

  bool may_train() const { return is_heard && out.empty(); }
  bool operator==(const NodeState&) const = default;
};

// A fault of the last kRemembered seconds, so that the same one climbs the ladder.
struct PastFault {
  double time = 0.0;
  Symptom symptom = Symptom::none;
  std::string subject;

  bool operator==(const PastFault&) const = default;
};

// What a recovery is about.
struct Incident {
  double began = 0.0;
  std::vector<Fact> faults;          // not yet judged: those that gather has seen
  Rung rung = Rung::in_job_restart;  // the highest that a fault has asked for
  std::string reason = "start";
  std::set<std::string> suspects;   // nodes that are replaced if there are spares enough
  bool is_charged = false;          // to the budgets: once, whatever else goes wrong on the way
  bool stops = false;               // no generation follows: the run was asked to stop
  std::optional<int64_t> gives_up;  // exit code
  double waiting_since = -1.0;      // for nodes; -1: does not

  bool operator==(const Incident&) const = default;
};

// The ranks are asked to stop at the end of a step, and the next generation follows. No step is done twice.
struct PlannedMove {
  std::string reason;
  bool is_ordered = false;
  double by = 0.0;  // what has not stopped then is killed

  bool operator==(const PlannedMove&) const = default;
};

// All that a supervisor knows of its run. The facts of the journals, taken in their order, give it again.
struct RunState {
  Settings settings;
  int64_t term = 0;
  int64_t newest = 0;  // generation of the newest roster that is known, whoever made it

  RunPhase phase = RunPhase::gather;
  double phase_began = 0.0;
  double settles_until = -1.0;  // a new leader listens, and decides nothing; -1: it decides

  std::map<std::string, NodeState> nodes;
  std::optional<Roster> roster;  // of the newest generation that is claimed
  std::optional<Roster> next;    // that is to be claimed
  std::string claim_problem;     // why it could not be, lately
  double claim_again = 0.0;
  Incident incident;

  RosterBudgets budgets;
  double resume_at = 0.0;   // back-off: not placed before
  int64_t fewer_nodes = 0;  // that it goes on with while it cannot have all; 0: it waits for all
  int64_t best_step = -1;   // newest that the world has finished, in any generation
  std::vector<PastFault> past;
  std::map<int64_t, int64_t> from_steps;  // by generation: what earlier ones kept of later steps is void
  std::string learned;                    // deadlines.h

  bool store_is_ready = false;
  std::optional<PlannedMove> move;
  bool stop_requested = false;
  double stop_by = 0.0;            // what has not stopped then is killed
  std::optional<int64_t> verdict;  // exit code
  std::vector<std::string> story;  // what was tried, the last kStory entries

  static constexpr size_t kStory = 60;

  int64_t generation() const { return roster ? roster->generation : 0; }
  bool is_settling() const { return settles_until >= 0; }
  // Ranks run, or should.
  bool has_ranks() const { return phase >= RunPhase::start && phase <= RunPhase::running; }
  bool operator==(const RunState&) const = default;
};

}  // namespace megalith::resilience
