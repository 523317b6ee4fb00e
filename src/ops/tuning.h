#pragma once

#include <filesystem>
#include <string>

#include "core/stream.h"

namespace megalith::ops {

// How a GPU computes each GEMM and each attention is chosen the first time it is met. These choices are the stream's
// tuning: it holds for one GPU model, driver and library; on the CPU there is none.

// While it lives, new choices are made by timing all candidates; without, the library's first answer is taken. Timing
// runs an operation many times over: whatever is computed meanwhile is garbage.
class TuneByTiming {
 public:
  explicit TuneByTiming(Stream& stream);
  ~TuneByTiming();
  TuneByTiming(const TuneByTiming&) = delete;
  TuneByTiming& operator=(const TuneByTiming&) = delete;

 private:
  [[maybe_unused]] Stream& stream_;  // a build without CUDA has no use for it
};

struct TuningCounts {
  int64_t made = 0;    // choices made since the stream was
  int64_t loaded = 0;  // taken from a file
  int64_t failed = 0;  // the library had no answer; another kernel computes it
};
TuningCounts tuning_counts(Stream& stream);

// Takes choices from a file that save_tuning() wrote; those for another GPU, driver or library are passed over. A
// missing file has none; a damaged one is refused with its name. What is already known stays.
void load_tuning(Stream& stream, const std::filesystem::path& file);
// The same between ranks: all that is known, as a text, and what another rank knows, which takes the place of what is
// known here. Ranks on other GPUs, drivers or libraries must not exchange them.
std::string tuning_text(Stream& stream);
void take_tuning(Stream& stream, const std::string& text);
// Adds what is known to the file, atomically: choices for other GPUs in it stay.
void save_tuning(Stream& stream, const std::filesystem::path& file);

}  // namespace megalith::ops
