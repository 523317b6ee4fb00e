#include "core/telemetry.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

struct Recorder : Sink {
  void on_event(const Event& event) override { events.push_back(event); }
  void on_metrics(const Metrics& metrics) override { steps.push_back(metrics.step); }
  std::vector<Event> events;
  std::vector<int64_t> steps;
};

TEST(Telemetry, SpansComeAsPairsWithOneId) {
  Telemetry telemetry;
  const auto recorder = std::make_shared<Recorder>();
  telemetry.add(recorder);
  {
    Span outer(telemetry, "step", 7);
    Span inner(telemetry, "checkpoint_save", 7, {{"tier", std::string("local")}});
    inner.add("bytes", int64_t{12});
  }
  telemetry.emit(Metrics{.kind = "train", .step = 7});
  ASSERT_EQ(recorder->events.size(), 4U);
  EXPECT_EQ(recorder->events[0].id, recorder->events[3].id);
  EXPECT_EQ(recorder->events[1].id, recorder->events[2].id);
  EXPECT_NE(recorder->events[0].id, recorder->events[1].id);
  EXPECT_EQ(recorder->events[2].phase, Phase::end);
  EXPECT_EQ(recorder->events[2].fields.at(0).first, "bytes");
  EXPECT_GE(recorder->events[3].duration, recorder->events[2].duration);
  EXPECT_EQ(recorder->steps, std::vector<int64_t>{7});
}

}  // namespace
}  // namespace megalith
