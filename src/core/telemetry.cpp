#include "core/telemetry.h"

#include "core/clock.h"

namespace megalith {

std::optional<double> number_of(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<double> number_in(const Fields& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return number_of(value);
  }
  return std::nullopt;
}

Moment Moment::now() {
  return {.wall = wall_seconds(), .monotonic = monotonic_seconds()};
}

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
                        .fields = std::move(fields_)});
}

}  // namespace megalith
