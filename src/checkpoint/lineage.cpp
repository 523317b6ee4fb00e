#include "checkpoint/lineage.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/file_names.h"

namespace megalith::checkpoint {

int64_t generation_of(const RunState& state) {
  const auto found = state.extra.find(kGenerationKey);
  return found == state.extra.end() ? 0 : parse_number(found->second).value_or(0);
}

const config::GenerationStart* Lineage::who_gave_up(int64_t generation, int64_t step) const {
  const auto found = std::find_if(generations_.begin(), generations_.end(), [&](const config::GenerationStart& start) {
    return start.generation > generation && step > start.from_step;
  });
  return found == generations_.end() ? nullptr : &*found;
}

Lineage::Standing Lineage::standing_of(int64_t generation, int64_t step) const {
  if (is_known() && generation > this->generation()) return Standing::newer;
  return who_gave_up(generation, step) == nullptr ? Standing::belongs : Standing::given_up;
}

std::string Lineage::why_not(const RunState& state) const {
  const int64_t saved_by = generation_of(state);
  switch (standing_of(saved_by, state.step)) {
    case Standing::belongs:
      return {};
    case Standing::newer:
      return fmt::format("generation {} saved it, and this is generation {}", saved_by, generation());
    case Standing::given_up:
      break;
  }
  const config::GenerationStart& start = *who_gave_up(saved_by, state.step);
  const std::string from = start.from_step == config::GenerationStart::kAnew
                               ? "began anew"
                               : fmt::format("went on from step {}", start.from_step);
  return fmt::format("generation {} saved it, and generation {} {}", saved_by, start.generation, from);
}

Lineage Lineage::before_last() const {
  return Lineage({generations_.begin(), generations_.end() - 1});
}

}  // namespace megalith::checkpoint
