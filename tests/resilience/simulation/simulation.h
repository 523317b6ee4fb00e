#pragma once

#include <cstdint>
#include <string>

#include "resilience/monitor/monitor_logic.h"
#include "resilience/supervise/supervisor.h"

namespace megalith::resilience::testing {

// The real sensor, controller, actuator and monitor logic over a pretended run, on a virtual clock: a network that
// delays, loses, doubles and reorders messages and cuts nodes off; ranks, stores, nodes, monitors and supervisors that
// die, hang and freeze at any moment; a run directory that fails, tears and delays writes. A seed always gives the same
// story.

struct SimulationOptions {
  int64_t min_nodes = 2;
  int64_t max_nodes = 16;
  double quiet_share = 0.1;  // of seeds, in which nothing goes wrong
  bool few_faults = false;   // at most two: a large fleet
  double failing_writes =
      -1.0;            // share of writes to the run directory that fail, or crash their writer; -1: by the seed
  std::string policy;  // rows that replace those of the ladder, as YAML; empty: none
  // What a test takes out to see its invariant break.
  SupervisorGuards supervisor_guards;
  MonitorGuards monitor_guards;
  bool exclusive_create = true;
  bool tells_story = false;
};

enum class Invariant : uint8_t {
  none,
  one_roster_per_generation,
  no_old_term_takes_effect,
  one_recovery_at_a_time,
  no_restart_without_proof,
  no_node_out_without_evidence,
  ends_in_bounded_time,
  journal_gives_the_state,
};
const char* name_of(Invariant invariant);

struct SimulationResult {
  Invariant violated = Invariant::none;
  std::string how;  // in words
  int64_t exit_code = -1;
  int64_t generations = 0;
  int64_t faults = 0;  // that were injected
  int64_t terms = 0;
  double seconds = 0.0;  // on the virtual clock
  std::string story;     // where asked for
};

SimulationResult simulate(uint64_t seed, const SimulationOptions& options = {});

}  // namespace megalith::resilience::testing
