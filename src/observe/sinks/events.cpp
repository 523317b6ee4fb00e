#include "observe/sinks/events.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/event_names.h"
#include "core/process/host.h"
#include "observe/logs/event_line.h"

namespace megalith::observe {

using nlohmann::ordered_json;

namespace {
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

EventsSink::EventsSink(const std::filesystem::path& path, EventOrigin origin, size_t capacity)
    : origin_(std::move(origin)), boot_(boot_id()), file_(path, AsyncFile::Content::lines, capacity) {
  if (origin_.node.empty()) origin_.node = host_name();
  if (ends_in_torn_line(path)) file_.push("\n");
}

EventsSink::~EventsSink() {
  flush();
}

std::string EventsSink::line_of(const Event& event) {
  const ordered_json line = {{"time", utc_timestamp(event.when.wall)},
                             {"mono", event.when.monotonic},
                             {"boot", boot_},
                             {"run", origin_.run_id},
                             {"generation", origin_.generation},
                             {"node", origin_.node},
                             {"rank", origin_.rank},
                             {"seq", ++sequence_},
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

void EventsSink::on_event(const Event& event) {
  report_losses(event.when);
  file_.push(line_of(event));
}

void EventsSink::on_metrics(const Metrics& metrics) {
  Event event{
      .name = event::kMetrics, .step = metrics.step, .fields = {{event::kKind, metrics.kind}}, .when = metrics.when};
  event.fields.insert(event.fields.end(), metrics.values.begin(), metrics.values.end());
  on_event(event);
}

void EventsSink::report_losses(const Moment& when) {
  const int64_t lost = file_.lost();
  if (lost == lost_reported_) return;
  const Event report{.name = event::kEventsLost,
                     .reason = "the disk was full or too slow",
                     .fields = {{event::kCount, lost - lost_reported_}},
                     .when = when};
  if (file_.push(line_of(report))) lost_reported_ = lost;
}

void EventsSink::flush() {
  file_.flush();
  report_losses(Moment::now());
  file_.flush();
}

}  // namespace megalith::observe
