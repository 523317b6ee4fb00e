#include "observe/events.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "observe/host.h"

namespace megalith::observe {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {
constexpr std::string_view kCrcKey = ",\"crc\":\"";
constexpr size_t kCrcDigits = 16;

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

std::string crc_of(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

Fields fields_of(const ordered_json& object) {
  Fields fields;
  for (const auto& [key, value] : object.items()) {
    if (value.is_boolean()) fields.emplace_back(key, value.get<bool>());
    if (value.is_number_integer()) fields.emplace_back(key, value.get<int64_t>());
    if (value.is_number_float()) fields.emplace_back(key, value.get<double>());
    if (value.is_string()) fields.emplace_back(key, value.get<std::string>());
  }
  return fields;
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
  return fmt::format("{}{}{}\"}}\n", text, kCrcKey, crc_of(text));
}

void EventsSink::on_event(const Event& event) {
  report_losses(event.when);
  file_.push(line_of(event));
}

void EventsSink::on_metrics(const Metrics& metrics) {
  Event event{.name = "metrics", .step = metrics.step, .fields = {{"kind", metrics.kind}}, .when = metrics.when};
  event.fields.insert(event.fields.end(), metrics.values.begin(), metrics.values.end());
  on_event(event);
}

void EventsSink::report_losses(const Moment& when) {
  const int64_t lost = file_.lost();
  if (lost == lost_reported_) return;
  const Event report{.name = "events_lost",
                     .reason = "the disk was full or too slow",
                     .fields = {{"count", lost - lost_reported_}},
                     .when = when};
  if (file_.push(line_of(report))) lost_reported_ = lost;
}

void EventsSink::flush() {
  file_.flush();
  report_losses(Moment::now());
  file_.flush();
}

std::optional<LoggedEvent> parse_event_line(std::string_view line) {
  const size_t tail = kCrcKey.size() + kCrcDigits + 2;  // ,"crc":"0123456789abcdef"}
  if (line.size() <= tail || !line.ends_with("\"}")) return std::nullopt;
  const std::string_view covered = line.substr(0, line.size() - tail);
  const std::string_view rest = line.substr(covered.size());
  if (!rest.starts_with(kCrcKey) || rest.substr(kCrcKey.size(), kCrcDigits) != crc_of(covered)) return std::nullopt;
  try {
    const ordered_json object = ordered_json::parse(line);
    LoggedEvent logged{.time = object.at("time"),
                       .monotonic = object.at("mono"),
                       .boot = object.at("boot"),
                       .run_id = object.at("run"),
                       .generation = object.at("generation"),
                       .node = object.at("node"),
                       .rank = object.at("rank"),
                       .sequence = object.at("seq"),
                       .event = {}};
    const std::string phase = object.at("phase");
    logged.event = {.name = object.at("event"),
                    .phase = phase == "begin" ? Phase::begin : (phase == "end" ? Phase::end : Phase::instant),
                    .id = object.at("id"),
                    .step = object.at("step"),
                    .duration = object.at("duration").is_number() ? object.at("duration").get<double>() : 0.0,
                    .reason = object.at("reason"),
                    .fields = fields_of(object.at("fields"))};
    return logged;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace megalith::observe
