#pragma once

#include <string>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "config/fleet_environment.h"

namespace megalith::checkpoint {

// RunState::extra has the number of the start, or generation, that saved it under this key. Parts which two of them
// saved of the same step are thereby never taken for one checkpoint.
inline constexpr const char* kGenerationKey = "start";
// 0 where it is not known.
int64_t generation_of(const RunState& state);

// Which saves belong to the history of a run under a supervisor: each generation went on from a step, and what older
// generations saved beyond it is given up for ever, whatever came later.
class Lineage {
 public:
  enum class Standing {
    belongs,
    given_up,
    newer,  // of a later generation than the last one here, which is thereby out of date
  };

  // Of a run without a supervisor: everything belongs to it.
  Lineage() = default;
  // By generation.
  explicit Lineage(std::vector<config::GenerationStart> generations) : generations_(std::move(generations)) {}

  bool is_known() const { return !generations_.empty(); }
  // Of the last one; only where it is known.
  int64_t generation() const { return generations_.back().generation; }
  int64_t from_step() const { return generations_.back().from_step; }
  bool begins_anew() const { return from_step() == config::GenerationStart::kAnew; }

  Standing standing_of(int64_t generation, int64_t step) const;
  Standing standing_of(const RunState& state) const { return standing_of(generation_of(state), state.step); }
  // Why it is not loaded, for people; empty where it belongs.
  std::string why_not(const RunState& state) const;
  // As it was before the last generation.
  Lineage before_last() const;

 private:
  // The first that gives it up; null: none.
  const config::GenerationStart* who_gave_up(int64_t generation, int64_t step) const;

  std::vector<config::GenerationStart> generations_;
};

}  // namespace megalith::checkpoint
