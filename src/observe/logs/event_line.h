#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/telemetry.h"
#include "observe/logs/json_scan.h"

namespace megalith::observe {

// A line of events.jsonl (sinks/events.h has its format), read without building anything: logs are long. Views point
// into the line; members are as written, see text_of().
struct EventLine {
  int64_t wall = 0;        // microseconds since the epoch
  double monotonic = 0.0;  // seconds
  std::string_view boot;
  JsonMember run;
  int64_t generation = 0;
  JsonMember node;
  int64_t rank = 0;
  int64_t sequence = 0;
  std::string_view event;
  Phase phase = Phase::instant;
  int64_t id = 0;
  int64_t step = -1;
  double duration = 0.0;  // seconds
  JsonMember reason;
  std::span<const JsonMember> members;  // of the line and of its fields

  // Null where there is none.
  const JsonMember* field(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
};

constexpr std::string_view kEventFields = "fields";  // JsonMember::parent of what an event's fields are

// Nothing for a line that is torn, damaged or of another kind. `line` comes without its line end; `scratch` is what the
// result points into, and keeps its memory between calls.
std::optional<EventLine> parse_event_line(std::string_view line, std::vector<JsonMember>& scratch);

// Whether the line ends as those of events.jsonl do, damaged or not.
bool has_crc(std::string_view line);
// `object` lacks its closing brace.
std::string with_crc(std::string_view object);

}  // namespace megalith::observe
