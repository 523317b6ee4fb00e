#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace megalith {

// What rooms say about what they do. Who listens (files, a terminal, a dashboard) is the business of `observe`.

using Value = std::variant<bool, int64_t, double, std::string>;
using Fields = std::vector<std::pair<std::string, Value>>;

// Nothing for texts and truth values.
std::optional<double> number_of(const Value& value);
// The number under a name, nothing where there is none.
std::optional<double> number_in(const Fields& fields, std::string_view name);

// A point in time on both clocks: the wall's may step, the monotonic one means nothing on another machine.
struct Moment {
  double wall = 0.0;       // seconds since 1970-01-01 UTC
  double monotonic = 0.0;  // seconds

  static Moment now();
};

enum class Phase { instant, begin, end };

// Something that happened. A span is a begin and an end with the same id; a kill leaves the last span open.
struct Event {
  std::string name;  // core/event_names.h
  Phase phase = Phase::instant;
  int64_t id = 0;         // pairs begin and end; 0 for an instant
  int64_t step = -1;      // -1: not tied to a step
  double duration = 0.0;  // seconds, of an end
  std::string reason;     // why, where that is worth saying
  Fields fields;
  Moment when = Moment::now();  // a listener may hear of it later
};

// The numbers of one training step (or of one validation), in the order in which they should be shown.
struct Metrics {
  std::string kind;  // metric::kTrain or metric::kValidation (core/metric_names.h)
  int64_t step = 0;  // 0-based
  Fields values;
  Moment when = Moment::now();
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void on_event(const Event& event) = 0;
  virtual void on_metrics(const Metrics& metrics) = 0;
  virtual void flush() {}
};

// Not thread-safe: one per rank, used by the thread that runs the loop.
class Telemetry {
 public:
  void add(std::shared_ptr<Sink> sink) { sinks_.push_back(std::move(sink)); }

  void emit(const Event& event);
  void emit(const Metrics& metrics);
  void flush();

  int64_t next_span_id() { return ++last_span_; }

 private:
  std::vector<std::shared_ptr<Sink>> sinks_;
  int64_t last_span_ = 0;
};

// Begins a span when made and ends it when destroyed.
class Span {
 public:
  Span(Telemetry& telemetry, std::string name, int64_t step = -1, Fields fields = {});
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  // Added to the end event.
  void add(std::string key, Value value) { fields_.emplace_back(std::move(key), std::move(value)); }

 private:
  Telemetry& telemetry_;
  std::string name_;
  int64_t id_;
  int64_t step_;
  double begin_;
  Fields fields_;
};

}  // namespace megalith
