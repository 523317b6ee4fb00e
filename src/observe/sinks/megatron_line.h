#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/telemetry.h"

namespace megalith::observe {

struct MegatronLineOptions {
  std::function<void(std::string_view)> print;  // lines with their ends
  int64_t max_steps = 0;
  int64_t log_every_n_steps = 1;
  int64_t global_batch_size = 0;
};

// What Megatron-LM prints, character for character, for the tools that read its logs:
//   [2026-01-31 12:34:56.789012] iteration       10/     500 | consumed samples:         2560 | elapsed time per ...
// after the first step, then every log_every_n_steps with means over the steps in between; and its lines of a
// validation.
class MegatronLineSink : public Sink {
 public:
  explicit MegatronLineSink(MegatronLineOptions options) : options_(std::move(options)) {}

  void on_event(const Event&) override {}
  void on_metrics(const Metrics& metrics) override;

 private:
  // Since the last line.
  struct Interval {
    int64_t steps = 0;
    int64_t skipped = 0;
    int64_t not_finite = 0;
    double seconds = 0.0;
    double loss = 0.0;  // summed over steps that were not skipped
  };
  void add(const Metrics& metrics);
  std::string iteration_line(const Metrics& metrics) const;

  MegatronLineOptions options_;
  Interval interval_;
  bool is_first_ = true;
};

// exp(loss), of a loss of at most 20, as Megatron has it.
double megatron_perplexity(double loss);

}  // namespace megalith::observe
