#include "observe/report_words.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace megalith::observe {

std::string with_thousands(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string in_words(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 60.0) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string bytes_in_words(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024.0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

}  // namespace megalith::observe
