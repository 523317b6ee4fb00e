#pragma once

#include <fmt/format.h>

#include <string>

#include "core/clock.h"
#include "core/hash/digest.h"

namespace megalith::test {

// A line of events.jsonl at a time of the test's choosing.
struct EventLine {
  double time = 0.0;  // seconds since the epoch
  std::string event;
  int64_t step = -1;
  std::string phase = "instant";
  double duration = 0.0;
  std::string reason = "";
  std::string fields = "{}";
  int64_t generation = 0;
  std::string boot = "boot-1";
  double monotonic = -1.0;  // negative: as the wall clock
  std::string run = "run-1";
};

inline std::string with_crc(const std::string& text) {
  return fmt::format("{},\"crc\":\"{}\"}}", text, digest_of(text));
}

inline std::string to_line(const EventLine& line) {
  const double monotonic = line.monotonic < 0.0 ? line.time - 1.7e9 : line.monotonic;
  return with_crc(fmt::format(
      R"({{"time":"{}","mono":{:.6f},"boot":"{}","run":"{}","generation":{},"node":"host","rank":0,"seq":1,)"
      R"("event":"{}","phase":"{}","id":1,"step":{},"duration":{},"reason":"{}","fields":{})",
      utc_timestamp(line.time), monotonic, line.boot, line.run, line.generation, line.event, line.phase, line.step,
      line.duration, line.reason, line.fields));
}

inline std::string step_line(double end, int64_t step, double seconds, double data_wait = 0.0, int64_t generation = 0) {
  return to_line({.time = end,
                  .event = "metrics",
                  .step = step,
                  .fields = fmt::format(R"({{"kind":"train","step_time":{},"data_wait":{}}})", seconds, data_wait),
                  .generation = generation});
}

// A line of a supervisor's journal.
inline std::string fact_line(double time, const std::string& kind, const std::string& order = "",
                             const std::string& reason = "") {
  return to_line({.time = time,
                  .event = "fact",
                  .reason = reason,
                  .fields = fmt::format(R"({{"version":1,"kind":"{}","order":"{}"}})", kind, order)});
}

// A line of the log of Google's resiliency library. `seconds` within the hour.
inline std::string google_line(double seconds, const std::string& type, int64_t step = -1) {
  const std::string more = step < 0 ? R"("node_rank": 0)" : fmt::format(R"("step": {})", step);
  const auto whole = static_cast<int>(seconds);
  return fmt::format(R"({{"timestamp": "2025-04-02T06:{:02}:{:02}.{:06}", "job_name": "job", "event_type": "{}", {}}})",
                     whole / 60, whole % 60, static_cast<int>((seconds - whole) * 1e6), type, more);
}

}  // namespace megalith::test
