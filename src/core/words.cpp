#include "core/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace megalith {

std::string counted(int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string with_commas(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_in_words(double bytes) {
  struct Unit {
    const char* name;
    int decimals;
  };
  constexpr Unit kUnits[] = {{"B", 0}, {"KiB", 1}, {"MiB", 1}, {"GiB", 2}, {"TiB", 2}};
  constexpr double kStep = 1024.0;
  const Unit* unit = std::begin(kUnits);
  for (; bytes >= kStep && unit + 1 != std::end(kUnits); ++unit) bytes /= kStep;
  return fmt::format("{:.{}f} {}", bytes, unit->decimals, unit->name);
}

std::string percent_in_words(double share) {
  const double percent = 100.0 * share;
  return percent > 0.0 && percent < 0.01 ? "below 0.01%" : fmt::format("{:.3g}%", percent);
}

std::string duration_in_words(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds > 0.0 && seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds > 0.0 && seconds < 0.1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 60.0) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string format_duration(double seconds) {
  const auto total = static_cast<int64_t>(std::max(0.0, seconds));
  const int64_t hours = total / 3600;
  const int64_t minutes = total / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
  return fmt::format("{:02}:{:02}", minutes, total % 60);
}

}  // namespace megalith
