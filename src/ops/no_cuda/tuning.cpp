#include "ops/tuning.h"

namespace megalith::ops {

TuneByTiming::TuneByTiming(Stream& stream) : stream_(stream) {}
TuneByTiming::~TuneByTiming() = default;

TuningCounts tuning_counts(Stream&) {
  return {};
}
void load_tuning(Stream&, const std::filesystem::path&) {}
std::string tuning_text(Stream&) {
  return "";
}
void take_tuning(Stream&, const std::string&) {}
void save_tuning(Stream&, const std::filesystem::path&) {}

}  // namespace megalith::ops
