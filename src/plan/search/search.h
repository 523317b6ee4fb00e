#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/stage_program.h"
#include "plan/memory_table.h"
#include "plan/rates/operation_times.h"
#include "plan/search/candidate.h"
#include "plan/step_time/step_time.h"

namespace megalith::plan {

struct SearchRequest {
  config::Run run;         // validated
  int64_t vocabulary = 0;  // before padding
  Cluster cluster;
  std::set<std::string> pinned = {};  // keys of the config that keep their values
  double headroom = 0.03;             // share of a GPU's memory that stays free
  int64_t most_tensor = 0;            // 0: the GPUs of a scale-up domain
  size_t shown = 10;
  bool finds_front = false;  // slower layouts that need less memory, too
  Constants constants = fitted_constants();
  Rates rates = Rates::of_h200();
  cost::Accelerator rates_of = cost::Hardware().accelerator("h200");
};

// A layout whose memory was rehearsed and whose step was simulated.
struct PlannedLayout {
  Candidate candidate;
  RunFeatures features;
  StepParts parts;
  OwnTimes times;
  MemoryTable memory;  // of the worst rank
  int64_t worst_stage = 0;

  double seconds() const { return parts.total(); }
};

struct SearchResult {
  int64_t possible = 0;  // layouts that divide
  int64_t in_bound = 0;  // of those, that the bound of memory leaves
  int64_t rehearsed = 0;
  // Fastest first; but of those that the model cannot tell from the fastest, the preferred one (preference.h), unless
  // it is slower than the run's own layout. Empty where none fits.
  std::vector<PlannedLayout> best;
  std::optional<PlannedLayout> fastest;  // where a tie is preferred to it
  // Where it was asked for: those than which no other that was rehearsed is both faster and smaller, fastest first,
  // none twice as slow as the best.
  std::vector<PlannedLayout> front;
  // Where none fits: the one that needs least, of those rehearsed.
  std::vector<PlannedLayout> smallest;

  double least_seconds() const { return (fastest ? *fastest : best.at(0)).seconds(); }
};

// Predicted steps closer to each other than this are ties.
constexpr double kTie = 0.02;
bool is_tie(double seconds, double least_seconds);
bool same_layout(const Candidate& a, const Candidate& b);

int64_t usable_bytes(const cost::Accelerator& gpu, double headroom);

// With as many micro batches as its memory depends on: further ones find the slots of earlier ones empty.
engine::StageRequest with_few_micro_batches(engine::StageRequest request);

// The run's own layout on these GPUs. A user error where it cannot be.
PlannedLayout plan_as_is(const SearchRequest& request);
SearchResult search_layouts(const SearchRequest& request);

}  // namespace megalith::plan
