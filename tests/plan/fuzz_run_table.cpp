#include "core/error.h"
#include "plan/step_time/predictions.h"

// A table is refused with a user error or predicted: no time is negative or not a number.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  static const cost::Hardware hardware;
  try {
    const auto runs = plan::parse_run_table({reinterpret_cast<const char*>(data), size}, "runs.csv", hardware);
    for (const plan::Prediction& prediction : plan::predict(runs, plan::fitted_constants())) {
      if (prediction.problem.empty() && !(prediction.parts.total() > 0.0)) __builtin_trap();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::user) __builtin_trap();
  }
  return 0;
}
