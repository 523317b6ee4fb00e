#include "observe/sinks/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/event_names.h"
#include "core/metric_names.h"

namespace megalith::observe {

namespace {
struct Gauge {
  std::string_view ours;
  std::string_view name;  // behind megalith_
  std::string_view help;
};
constexpr Gauge kGauges[] = {
    {metric::kTrainLoss, "train_loss", "mean loss of the last step over its tokens"},
    {metric::kValidationLoss, "validation_loss", "mean loss of the last validation"},
    {metric::kLearningRate, "learning_rate", "learning rate of the last step"},
    {metric::kGradientNorm, "gradient_norm", "norm of the gradient before clipping"},
    {metric::kGlobalStep, "step", "the last step that is done, from 0"},
    {metric::kConsumedSamples, "consumed_samples", "samples trained on"},
    {metric::kEpoch, "epoch", "passes over the training data, from 0"},
    {metric::kStepTime, "step_seconds", "wall time of the last step"},
    {metric::kMeanStepTime, "step_seconds_mean", "mean wall time of the last few steps, as NeMo logs it"},
    {metric::kBackwardTime, "backward_seconds", "time of backward in the last step"},
    {metric::kTokensPerSecond, "tokens_per_second", "tokens trained per second, all ranks"},
    {metric::kTflops, "tflops", "model TFLOPS, all ranks"},
    {metric::kTflopsPerRank, "tflops_per_rank", "model TFLOPS of one rank"},
    {metric::kMfu, "mfu", "share of the accelerator's peak"},
    {metric::kFloorFraction, "floor_fraction", "share of the step that the measured floor would take"},
    {metric::kDataWait, "data_wait_seconds", "time in the last step in which no samples were ready"},
    {metric::kCommunicationExposed, "communication_exposed_seconds",
     "time in which rank 0 stood waiting for other ranks"},
    {metric::kCheckpointStall, "checkpoint_stall_seconds", "time before the last step in which saving held up the run"},
    {metric::kSlowestRank, "slowest_rank", "the rank that worked longest in a step"},
    {metric::kRankSpread, "rank_spread_seconds", "work of the slowest rank in a step beyond that of the fastest"}};

std::string quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return '"' + escaped + '"';
}

std::string metric_name(std::string_view text) {
  std::string name = "megalith_";
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += is_plain ? c : '_';
  }
  return name;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}
}  // namespace

PrometheusSink::PrometheusSink(const PrometheusOptions& options) {
  sample("megalith_run_info", fmt::format("{{name={},run_id={}}}", quoted(options.run_name), quoted(options.run_id)),
         "gauge", "the run that these numbers are of") = 1.0;
  server_ = std::make_unique<ScrapeServer>(options.address, options.port, [this] { return text(); });
}

double& PrometheusSink::sample(const std::string& name, const std::string& labels, const char* type,
                               const std::string& help) {
  Family& family = families_[name];
  family.type = type;
  family.help = help;
  return family.samples[labels];
}

void PrometheusSink::take(const std::string& name, double value) {
  if (name == metric::kSkipped) {
    sample("megalith_skipped_steps_total", "", "counter", "steps whose update was not finite and was skipped") += value;
    return;
  }
  if (name.starts_with(metric::kMemory)) {
    const std::string labels = fmt::format("{{arena={}}}", quoted(name.substr(metric::kMemory.size())));
    sample("megalith_memory_bytes", labels, "gauge", "memory of rank 0 by arena, as planned before the first step") =
        value;
    return;
  }
  const auto* known =
      std::find_if(std::begin(kGauges), std::end(kGauges), [&](const Gauge& gauge) { return gauge.ours == name; });
  if (known != std::end(kGauges)) {
    sample(metric_name(known->name), "", "gauge", std::string(known->help)) = value;
  } else {
    sample(metric_name(name), "", "gauge", "as the run logs it") = value;
  }
}

void PrometheusSink::on_metrics(const Metrics& metrics) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : metrics.values) {
    if (const std::optional<double> number = number_of(value)) take(name, *number);
  }
  if (metrics.kind != metric::kTrain) return;
  sample("megalith_steps_total", "", "counter", "steps done by this process") += 1.0;
  sample("megalith_last_step_timestamp_seconds", "", "gauge", "when the last step was done: old where a run hangs") =
      metrics.when.wall;
}

void PrometheusSink::on_event(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (event.phase != Phase::begin) {
    sample("megalith_events_total", fmt::format("{{event={}}}", quoted(event.name)), "counter",
           "what happened, and spans that ended") += 1.0;
  }
  if (event.phase == Phase::end) {
    sample("megalith_span_seconds_total", fmt::format("{{span={}}}", quoted(event.name)), "counter",
           "time spent, by what it was spent on") += event.duration;
  }
  if (event.name == event::kEventsLost) {
    sample("megalith_telemetry_lost_total", "", "counter", "metrics and events that could not be written") +=
        number_in(event.fields, event::kCount).value_or(0.0);
  }
}

std::string PrometheusSink::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, family] : families_) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, family.help, name, family.type);
    for (const auto& [labels, value] : family.samples)
      text += fmt::format("{}{} {}\n", name, labels, number_text(value));
  }
  return text;
}

}  // namespace megalith::observe
