#include "observe/sinks/megatron_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/metric_names.h"

namespace megalith::observe {

namespace {
double number_or_zero(const Metrics& metrics, std::string_view name) {
  return number_in(metrics.values, name).value_or(0.0);
}

std::string validation_lines(int64_t iteration, double loss) {
  const std::string text =
      fmt::format(" validation loss at iteration {} | lm loss value: {:.6E} | lm loss PPL: {:.6E} | ", iteration, loss,
                  megatron_perplexity(loss));
  const std::string rule(text.size() + 1, '-');
  return fmt::format("{}\n{}\n{}\n", rule, text, rule);
}
}  // namespace

double megatron_perplexity(double loss) {
  return std::exp(std::min(20.0, loss));
}

void MegatronLineSink::on_metrics(const Metrics& metrics) {
  if (metrics.kind == metric::kValidation) {
    if (const auto loss = number_in(metrics.values, metric::kValidationLoss))
      options_.print(validation_lines(metrics.step + 1, *loss));
    return;
  }
  add(metrics);
  if (!is_first_ && (metrics.step + 1) % options_.log_every_n_steps != 0) return;
  options_.print(iteration_line(metrics));
  interval_ = {};
  is_first_ = false;
}

void MegatronLineSink::add(const Metrics& metrics) {
  const double loss = number_or_zero(metrics, metric::kTrainLoss);
  const bool skipped = number_or_zero(metrics, metric::kSkipped) != 0.0;
  ++interval_.steps;
  interval_.seconds += number_or_zero(metrics, metric::kStepTime);
  interval_.skipped += skipped ? 1 : 0;
  interval_.not_finite += std::isfinite(loss) ? 0 : 1;
  if (!skipped) interval_.loss += loss;
}

std::string MegatronLineSink::iteration_line(const Metrics& metrics) const {
  const double seconds = interval_.seconds / static_cast<double>(interval_.steps);
  // The interval's rate, from the last step's: both count the same work per step.
  const double last_rate = number_or_zero(metrics, metric::kTflopsPerRank);
  const double rate = seconds > 0.0 ? last_rate * number_or_zero(metrics, metric::kStepTime) / seconds : 0.0;
  const double loss = interval_.loss / static_cast<double>(std::max<int64_t>(1, interval_.steps - interval_.skipped));
  std::string line = fmt::format(" [{}] iteration {:8d}/{:8d} |", local_timestamp(metrics.when.wall), metrics.step + 1,
                                 options_.max_steps);
  line += fmt::format(" consumed samples: {:12d} |",
                      static_cast<int64_t>(number_or_zero(metrics, metric::kConsumedSamples)));
  line += fmt::format(" elapsed time per iteration (ms): {:.1f} |", seconds * 1e3);
  line += fmt::format(" throughput per GPU (TFLOP/s/GPU): {:.1f} |", rate);
  line += fmt::format(" learning rate: {:.6E} |", number_or_zero(metrics, metric::kLearningRate));
  const auto batch = static_cast<int64_t>(number_or_zero(metrics, metric::kGlobalBatchSize));  // told where it grows
  line += fmt::format(" global batch size: {:5d} |", batch > 0 ? batch : options_.global_batch_size);
  if (loss > 0.0) line += fmt::format(" lm loss: {:.6E} |", loss);
  line += fmt::format(" loss scale: {:.1f} |", 1.0);  // bf16 and fp32 need none
  line += fmt::format(" grad norm: {:.3f} |", number_or_zero(metrics, metric::kGradientNorm));
  line += fmt::format(" number of skipped iterations: {:3d} |", interval_.skipped);
  line += fmt::format(" number of nan iterations: {:3d} |", interval_.not_finite);
  return line + '\n';
}

}  // namespace megalith::observe
