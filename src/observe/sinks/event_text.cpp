#include "observe/sinks/event_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "observe/logs/event_line.h"

namespace megalith::observe {

using nlohmann::ordered_json;

std::string boot_id() {
  // Files under /proc have no size to ask for.
  char text[37] = {};
  try {
    File::open_for_reading("/proc/sys/kernel/random/boot_id").read_at(0, std::as_writable_bytes(std::span(text, 36)));
  } catch (const Error&) {
    return "unknown";
  }
  return text;
}

namespace {
std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::instant:
      return "instant";
    case Phase::begin:
      return "begin";
    case Phase::end:
      return "end";
  }
  return "?";
}

ordered_json to_json(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

ordered_json to_json(const Fields& fields) {
  ordered_json object = ordered_json::object();
  for (const auto& [key, value] : fields) {
    std::visit(
        [&object, name = &key](const auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, double>) {
            object[*name] = to_json(held);
          } else {
            object[*name] = held;
          }
        },
        value);
  }
  return object;
}

}  // namespace

std::string event_text(const Event& event, const EventOrigin& origin, const std::string& boot, int64_t sequence) {
  const ordered_json line = {{"time", utc_timestamp(event.when.wall)},
                             {"mono", event.when.monotonic},
                             {"boot", boot},
                             {"run", origin.run_id},
                             {"generation", origin.generation},
                             {"node", origin.node},
                             {"rank", origin.rank},
                             {"seq", sequence},
                             {"event", event.name},
                             {"phase", name_of(event.phase)},
                             {"id", event.id},
                             {"step", event.step},
                             {"duration", to_json(event.duration)},
                             {"reason", event.reason},
                             {"fields", to_json(event.fields)}};
  std::string text = line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  text.pop_back();  // the closing brace comes after the crc
  return with_crc(text) + "\n";
}

}  // namespace megalith::observe
