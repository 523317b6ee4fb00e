#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::resilience {

// What goes wrong, as the ladder (ladder.h) knows it.
enum class Symptom : uint8_t {
  none,
  rank_ended,    // by a signal or an exit code that means failure, or 0 without `done`, or nobody knows how
  user_error,    // exit code 2: the user's mistake, or data that is not what it should be
  call_failed,   // a rank's call failed, and it names others that live
  not_finite,    // a gradient; the run was told to stop at one
  load_failed,   // the step that the roster names could not be loaded
  rank_stuck,    // a deadline has passed, and somebody is suspect
  all_wait,      // a deadline has passed, and nobody is
  livelock,      // beats without steps
  store_ended,   // the generation's store, while ranks need it
  node_gone,     // its monitor is silent, and its ranks are gone or stand still
  stop_failed,   // a node did not get rid of its processes
  check_failed,  // a node's checks say that it cannot train
  start_failed,  // ranks did not start, or did not meet in time
};
constexpr int kSymptoms = 14;
const char* name_of(Symptom symptom);
std::optional<Symptom> symptom_named(std::string_view name);

enum class FactKind : uint8_t {
  lead,      // a supervisor takes over: `number`: term; `text`: settings; `order`: "2:57", the entries of the last term
             // that it knows; `generation`, `digest`: of the newest roster in the run directory; `evidence`: kNewFleet
             // where nothing of the fleet ran any longer
  heard,     // a monitor reports, for the first time or again: `node`, `text`: address, `digest`: boot id
  silent,    // a monitor does not, or its session broke: a hint
  fault,     // `symptom`, `evidence`, `node` and `ranks`: those that it names (suspects); `step`: newest that the world
             // finished
  overdue,   // a deadline has passed: the nodes should be asked what /proc says
  joined,    // all ranks have met
  loaded,    // all ranks step
  learned,   // `text`: how long sections take in this run (deadlines.h)
  progress,  // `step`: the world has finished it, and no generation had before
  completed,       // all ranks have ended and were done
  stopped,         // all ranks have ended, saved, before the last step
  stop_requested,  // by an operator or a monitor's signal; `seconds`: grace, 0: none
  order_done,      // `node`, `order`: name of its kind; `generation`
  order_failed,    // and why: `evidence`
  checked,         // `node`, `number`: CheckOutcome, `evidence`
  holdings,        // `node`, `text`: what it holds (decide/holdings.h)
  store_ready,     // `node`, `text`: address, `number`: port
  claimed,         // the roster of `generation` is there, and ours
  claim_conflict,  // `generation` has a roster of somebody else's
  claim_failed,    // the run directory cannot be written: `evidence`
  tick,            // time passes
};
constexpr int kFactKinds = 21;
const char* name_of(FactKind kind);
std::optional<FactKind> fact_kind_named(std::string_view name);

// A fleet that was killed while it stopped is started to train: it does not go on stopping.
inline constexpr const char* kNewFleet = "nothing of the fleet was running";

// All that the controller is ever told. Flat, so that a line of the journal holds it.
struct Fact {
  FactKind kind = FactKind::tick;
  double time = 0.0;  // seconds on the run's axis: since its first supervisor began, across all terms; never steps back
  std::string node;
  std::vector<int64_t> ranks;  // of the world
  int64_t generation = 0;      // that it is about; facts of other generations are dropped
  int64_t step = -1;
  int64_t number = 0;
  double seconds = 0.0;
  Symptom symptom = Symptom::none;
  std::string evidence;  // in words
  std::string text;
  std::string digest;
  std::string order;

  bool operator==(const Fact&) const = default;
};

}  // namespace megalith::resilience
