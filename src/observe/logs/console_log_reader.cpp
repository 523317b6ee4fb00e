#include "observe/logs/console_log_reader.h"

#include <charconv>
#include <cmath>

#include "core/metric_names.h"

namespace megalith::observe {

namespace {
// The number behind the last `label`, across blanks, '=' and ':'.
std::optional<double> number_behind(std::string_view line, std::string_view label) {
  const size_t at = line.rfind(label);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + label.size());
  const size_t digits = rest.find_first_not_of(" \t=:");
  if (digits == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(digits);
  double number = 0.0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<int64_t> count_behind(std::string_view line, std::string_view label) {
  constexpr double kLargest = 1e15;
  const std::optional<double> number = number_behind(line, label);
  if (!number || *number < 0.0 || *number > kLargest) return std::nullopt;
  return static_cast<int64_t>(*number);
}
}  // namespace

std::optional<ConsoleStep> read_nemo_line(std::string_view line) {
  const std::optional<double> seconds = number_behind(line, metric::kMeanStepTime);
  std::optional<int64_t> step = count_behind(line, metric::kGlobalStep);
  if (!step) step = count_behind(line, "iteration ");
  if (!seconds || !step) return std::nullopt;
  return ConsoleStep{.step = *step, .seconds = *seconds, .global_batch_size = count_behind(line, "global_batch_size")};
}

std::optional<ConsoleStep> read_megatron_line(std::string_view line) {
  const std::optional<double> milliseconds = number_behind(line, "elapsed time per iteration (ms)");
  // Other fields speak of iterations too; the first one counts them.
  const size_t first = line.find(" iteration ");
  const std::optional<int64_t> step = first == std::string_view::npos
                                          ? std::nullopt
                                          : count_behind(line.substr(first, line.find('|') - first), "iteration ");
  if (!milliseconds || !step) return std::nullopt;
  return ConsoleStep{
      .step = *step, .seconds = *milliseconds / 1e3, .global_batch_size = count_behind(line, "global batch size")};
}

}  // namespace megalith::observe
