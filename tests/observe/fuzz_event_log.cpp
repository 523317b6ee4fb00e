#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>

#include "observe/event_lines.h"
#include "observe/goodput/goodput.h"
#include "observe/logs/event_reader.h"

namespace {
using namespace megalith::observe;

// What another reader of JSON takes for an object, the scanner does too.
void check_scanner(std::string_view line) {
  std::vector<JsonMember> members;
  if (!scan_json_object(line, members)) {
    const auto brackets = std::count_if(line.begin(), line.end(), [](char c) { return c == '{' || c == '['; });
    // A zero byte ends the text for the other one.
    const bool comparable = brackets < 32 && line.find('\0') == std::string_view::npos;
    if (comparable && nlohmann::json::parse(line, nullptr, false).is_object()) __builtin_trap();
    return;
  }
  for (const JsonMember& member : members) {
    number_of(member);
    whole_number_of(member);
    text_of(member);
  }
}

void explain(EventCollector collector) {
  const RunEvents log = std::move(collector).finish();
  const WallTime wall = explain_wall_time(log);
  const double sum = std::accumulate(wall.seconds.begin(), wall.seconds.end(), 0.0);
  if (std::abs(sum - wall.total()) > 1e-9 * std::abs(wall.end) + 1e-3) __builtin_trap();
  goodput_table(log, measure_goodput(log, 1.0));
  wall_time_tables(wall);
}
}  // namespace

// Lines of any kind are read or counted, and whatever they tell, the uses of time add up to the whole. The input is
// also signed, so that the fuzzer gets behind the crc.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  EventCollector plain("");
  EventCollector with_crcs("");
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    check_scanner(line);
    plain.take(line);
    with_crcs.take(megalith::test::with_crc(std::string(line)));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  explain(std::move(plain));
  explain(std::move(with_crcs));
  return 0;
}
