#pragma once

#include <filesystem>
#include <string>

#include "core/stream.h"

namespace megalith::ops {

// How a GPU computes each matrix product and each attention is settled the first time it is met. Such plans hold for
// one GPU model, driver and library; on the CPU there are none.

// While it lives, new plans are chosen by timing all candidates; without, the library's first answer is taken. Timing
// runs an operation many times over: whatever is computed meanwhile is garbage.
class PlanTuning {
 public:
  explicit PlanTuning(Stream& stream);
  ~PlanTuning();
  PlanTuning(const PlanTuning&) = delete;
  PlanTuning& operator=(const PlanTuning&) = delete;

 private:
  [[maybe_unused]] Stream& stream_;  // a build without CUDA has no use for it
};

struct PlanCounts {
  int64_t made = 0;    // chosen or built since the stream was made
  int64_t loaded = 0;  // taken from a file
  int64_t failed = 0;  // the library had no plan; another kernel computes it
};
PlanCounts plan_counts(Stream& stream);

// Plans from a file that save_plans() wrote; those of another GPU, driver or library are passed over. A missing file is
// no plans; a damaged one is refused with its name. Plans that are already known stay.
void load_plans(Stream& stream, const std::filesystem::path& file);
// The same between ranks: all that is known, as a text, and what another rank knows, which takes the place of what is
// known here. Ranks on other GPUs, drivers or libraries must not exchange them.
std::string plans_text(Stream& stream);
void take_plans(Stream& stream, const std::string& text);
// Adds what is known to the file, atomically: plans of other GPUs in it stay.
void save_plans(Stream& stream, const std::filesystem::path& file);

}  // namespace megalith::ops
