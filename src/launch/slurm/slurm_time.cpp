#include "launch/slurm/slurm_time.h"

#include <string>
#include <vector>

namespace megalith::launch {

namespace {

constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;

std::optional<int64_t> number_of(std::string_view text) {
  constexpr size_t kMostDigits = 9;
  const bool digits =
      !text.empty() && text.size() <= kMostDigits && text.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? std::optional(std::stoll(std::string(text))) : std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_slurm_time(std::string_view text) {
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto number = number_of(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  std::vector<int64_t> parts;
  for (bool more = true; more;) {
    const size_t colon = text.find(':');
    const auto number = number_of(text.substr(0, colon));
    if (!number) return std::nullopt;
    parts.push_back(*number);
    more = colon != std::string_view::npos;
    if (more) text.remove_prefix(colon + 1);
  }
  if (parts.size() > 3) return std::nullopt;
  // What the first part counts depends on how many there are, and on whether days stand before.
  const bool begins_with_hours = dash != std::string_view::npos || parts.size() == 3;
  constexpr int64_t kUnits[] = {kHour, kMinute, 1};
  int64_t seconds = days * kDay;
  for (size_t i = 0; i < parts.size(); ++i) seconds += parts[i] * kUnits[i + (begins_with_hours ? 0 : 1)];
  return seconds;
}

}  // namespace megalith::launch
