#include "core/telemetry.h"

#include "core/clock.h"

namespace megalith {

void Telemetry::emit(const Event& event) {
  for (const auto& sink : sinks_) sink->on_event(event);
}

void Telemetry::emit(const Metrics& metrics) {
  for (const auto& sink : sinks_) sink->on_metrics(metrics);
}

void Telemetry::flush() {
  for (const auto& sink : sinks_) sink->flush();
}

Span::Span(Telemetry& telemetry, std::string name, int64_t step, Fields fields)
    : telemetry_(telemetry),
      name_(std::move(name)),
      id_(telemetry.next_span_id()),
      step_(step),
      begin_(monotonic_seconds()) {
  telemetry_.emit(Event{.name = name_, .phase = Phase::begin, .id = id_, .step = step_, .fields = std::move(fields)});
}

Span::~Span() {
  telemetry_.emit(Event{.name = name_,
                        .phase = Phase::end,
                        .id = id_,
                        .step = step_,
                        .duration = monotonic_seconds() - begin_,
                        .reason = std::move(reason_),
                        .fields = std::move(fields_)});
}

}  // namespace megalith
