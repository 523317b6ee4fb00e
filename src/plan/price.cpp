#include "plan/price.h"

#include <algorithm>
#include <cmath>

namespace megalith::plan {

namespace {

constexpr double kDay = 86400.0;
constexpr double kGiga = 1e9;
constexpr int64_t kStepsWithoutFailures = 1000;

// Young's interval with Daly's correction (Daly 2006, equation 20 to first order).
double optimal_interval(double stall, double between_failures) {
  const double young = std::sqrt(2 * stall * between_failures);
  return stall < between_failures / 2 ? young - stall : between_failures;
}

}  // namespace

Price price_of(const PricedRun& run, const Circumstances& c) {
  Price price;
  const double bandwidth = kGiga * std::min(static_cast<double>(run.nodes) * c.node_write_gb_s, c.file_system_gb_s);
  price.write_s = run.checkpoint_bytes / bandwidth;
  price.read_s = price.write_s;
  price.stall_s = run.checkpoint_copy_s;
  const double failures_of_day = c.failures / 1000 * static_cast<double>(run.nodes);
  price.between_failures_s = failures_of_day > 0 ? kDay / failures_of_day : INFINITY;
  // One save is under way at a time.
  const auto least_steps = static_cast<int64_t>(std::ceil(price.write_s / run.step_s));
  const int64_t steps =
      failures_of_day > 0 ? std::llround(optimal_interval(run.checkpoint_copy_s, price.between_failures_s) / run.step_s)
                          : kStepsWithoutFailures;
  price.interval_steps = std::max({int64_t{1}, least_steps, steps});
  price.interval_s = static_cast<double>(price.interval_steps) * run.step_s;
  const double lost = price.interval_s / 2 + c.detection_s + c.restart_s + price.read_s;
  price.goodput =
      1 - run.checkpoint_copy_s / price.interval_s - (failures_of_day > 0 ? lost / price.between_failures_s : 0.0);
  price.goodput = std::max(0.0, price.goodput);
  price.days = c.tokens / (run.tokens_of_step / run.step_s * kDay * price.goodput);
  price.gpu_hours = 24 * price.days * static_cast<double>(run.gpus);
  price.cost = price.gpu_hours * c.price;
  return price;
}

}  // namespace megalith::plan
