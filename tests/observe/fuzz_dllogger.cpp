#include <string_view>

#include "observe/logs/training_log.h"

// Lines of any kind are read or counted, and no step time is taken that is none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith::observe;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  TrainingLogCollector collector;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    collector.take(text.substr(0, end));
    collector.take("DLLL " + std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const TrainingLog log = std::move(collector).finish();
  for (const StepTime& step : log.steps) {
    if (!(step.seconds > 0.0)) __builtin_trap();
  }
  mean_step_time(log, 0, 1000);
  return 0;
}
