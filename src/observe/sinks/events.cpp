#include "observe/sinks/events.h"

#include "core/event_names.h"
#include "core/process/host.h"

namespace megalith::observe {

EventsSink::EventsSink(const std::filesystem::path& path, EventOrigin origin, size_t capacity)
    : origin_(std::move(origin)), boot_(boot_id()), file_(path, AsyncFile::Content::lines, capacity) {
  if (origin_.node.empty()) origin_.node = host_name();
  if (ends_in_torn_line(path)) file_.push("\n");
}

EventsSink::~EventsSink() {
  flush();
}

std::string EventsSink::line_of(const Event& event) {
  return event_text(event, origin_, boot_, ++sequence_);
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
