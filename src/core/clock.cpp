#include "core/clock.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>

namespace megalith {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

namespace {
struct SplitTime {
  std::time_t seconds;
  int micros;
};

SplitTime split(double seconds_since_epoch) {
  const auto micros = static_cast<int64_t>(std::llround(seconds_since_epoch * 1e6));
  return {static_cast<std::time_t>(micros / 1'000'000), static_cast<int>(micros % 1'000'000)};
}

std::string format_fields(const std::tm& t, int micros, char separator) {
  return fmt::format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}.{:06}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, separator,
                     t.tm_hour, t.tm_min, t.tm_sec, micros);
}
}  // namespace

std::string utc_timestamp(double seconds_since_epoch) {
  const SplitTime time = split(seconds_since_epoch);
  std::tm fields{};
  gmtime_r(&time.seconds, &fields);
  return format_fields(fields, time.micros, 'T') + "Z";
}

std::string local_timestamp(double seconds_since_epoch) {
  const SplitTime time = split(seconds_since_epoch);
  std::tm fields{};
  localtime_r(&time.seconds, &fields);
  return format_fields(fields, time.micros, ' ');
}

}  // namespace megalith
