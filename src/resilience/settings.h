#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "resilience/decide/ladder.h"

namespace megalith::resilience {

// What a supervisor is told of the run. It stands in the journal, so that a successor reads the facts with the same
// eyes. Times are seconds.
struct Settings {
  std::string run;    // id of the run
  int64_t nodes = 1;  // that have ranks
  int64_t ranks_per_node = 1;
  int64_t pipeline_stages = 1;  // the last axis of the mesh: ranks that differ by world / stages share a pipeline
  std::string config;           // for rosters
  std::vector<std::string> overrides;
  std::vector<int64_t> fewer_nodes;  // smaller numbers that it can go on with, the largest first
  int64_t first_generation = 1;  // one more than the starts that the run directory counted before it had a supervisor

  int64_t max_in_job_restarts = 3;    // without progress
  int64_t max_workload_restarts = 2;  // without progress
  int64_t starts_before_eviction =
      3;                   // without a new step: the pipelines of the suspects are replaced where spares suffice
  int64_t max_starts = 5;  // without a new step, the first counted
  std::vector<double> back_off = {0, 5, 30};  // before the first, second, ... restart without progress

  double heartbeat_timeout = 5;                 // silence of a monitor
  double initial_rank_heartbeat_timeout = 600;  // a beat, in the first steps of a run
  double rank_heartbeat_timeout = 0;            // a beat, later; 0: learned from the run
  double start_timeout = 600;                   // each section before the first step, the first time
  double workload_downtime_threshold = 180;     // wait for nodes, then go on with fewer or give up
  double scale_up_after = 300;                  // nodes that are back have been there for so long
  double gather = 1;                            // faults that belong together
  double stop_timeout = 30;                     // processes gone, device memory free
  double answer_timeout = 30;                   // of other orders
  double settle = 5;                            // a new leader listens at most so long
  double save_timeout = 600;  // from a request to stop to the end of all ranks, where no grace is known

  Ladder ladder;

  bool operator==(const Settings&) const = default;
};

// The config's part; config text, overrides and the run's id are the caller's. User error for a policy that cannot be
// read.
Settings settings_of(const config::Run& run);

std::string to_text(const Settings& settings);
// Data error that begins with `where`.
Settings parse_settings(const std::string& text, const std::string& where);

}  // namespace megalith::resilience
