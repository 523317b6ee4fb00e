#include "observe/sinks/dllogger.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/metric_names.h"
#include "observe/sinks/python_json.h"

namespace megalith::observe {

using nlohmann::ordered_json;

namespace {
// What NeMo logs, in its order.
constexpr std::string_view kKeys[] = {metric::kTrainLoss,       metric::kLearningRate,   metric::kGlobalStep,
                                      metric::kConsumedSamples, metric::kBackwardTime,   metric::kGradientNorm,
                                      metric::kMeanStepTime,    metric::kValidationLoss, metric::kEpoch};

// Python's datetime counts microseconds, and its str() of seconds drops trailing zeros.
double to_micros(double seconds) {
  return std::round(seconds * 1e6) / 1e6;
}
}  // namespace

std::string dllogger_line(const ordered_json& record) {
  return "DLLL " + python_json(record);
}

DlloggerSink::DlloggerSink(const std::filesystem::path& path, const ordered_json& parameters)
    : begin_(wall_seconds()), file_(path) {
  if (ends_in_torn_line(path)) file_.push("\n");
  write(wall_seconds(), "PARAMETER", parameters);
}

void DlloggerSink::on_metrics(const Metrics& metrics) {
  ordered_json data = ordered_json::object();
  for (const std::string_view key : kKeys) {
    const std::optional<double> number = number_in(metrics.values, key);
    if (!number) continue;
    if (key == metric::kEpoch) {
      data[std::string(key)] = static_cast<int64_t>(*number);
    } else {
      data[std::string(key)] = *number;
    }
  }
  if (!data.empty()) write(metrics.when.wall, metrics.step, data);
}

void DlloggerSink::write(double wall, const ordered_json& step, const ordered_json& data) {
  const double now = to_micros(wall);
  const ordered_json record = {{"timestamp", python_repr(now)},
                               {"datetime", local_timestamp(now)},
                               {"elapsedtime", python_repr(to_micros(now - begin_))},
                               {"type", "LOG"},
                               {"step", step},
                               {"data", data}};
  file_.push(dllogger_line(record) + "\n");
}

}  // namespace megalith::observe
