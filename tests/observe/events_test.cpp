#include "observe/events.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/failpoint.h"
#include "observe/files.h"
#include "observe/log_files.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using testing::TempDir;

EventOrigin origin() {
  return {.run_id = "run-1", .generation = 2, .rank = 3, .node = "host"};
}

TEST(Events, RoundTrip) {
  const TempDir directory;
  const auto path = directory / "events.jsonl";
  {
    Telemetry telemetry;
    telemetry.add(std::make_shared<EventsSink>(path, origin()));
    {
      Span span(telemetry, "checkpoint_save", 20, {{"bytes", int64_t{5}}});
      span.set_reason("time \"limit\"\nü\xff");
    }
    telemetry.emit(Metrics{
        .kind = "train", .step = 4, .values = {{"reduced_train_loss", 6.25}, {"bad", std::nan("")}, {"on", true}}});
    telemetry.flush();
    EXPECT_EQ(test::lines_of(path).size(), 3u);
  }
  const std::vector<std::string> lines = test::lines_of(path);
  const auto begin = parse_event_line(lines[0]);
  ASSERT_TRUE(begin.has_value());
  EXPECT_EQ(begin->run_id, "run-1");
  EXPECT_EQ(begin->generation, 2);
  EXPECT_EQ(begin->rank, 3);
  EXPECT_EQ(begin->node, "host");
  EXPECT_EQ(begin->sequence, 1);
  EXPECT_EQ(begin->time.size(), 27u);
  EXPECT_GT(begin->boot.size(), 6u);
  EXPECT_EQ(begin->event.name, "checkpoint_save");
  EXPECT_EQ(begin->event.phase, Phase::begin);
  EXPECT_EQ(begin->event.step, 20);
  EXPECT_EQ(begin->event.fields, (Fields{{"bytes", int64_t{5}}}));
  const auto end = parse_event_line(lines[1]);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->event.id, begin->event.id);
  EXPECT_EQ(end->event.phase, Phase::end);
  EXPECT_GE(end->event.duration, 0.0);
  EXPECT_GE(end->monotonic, begin->monotonic);
  EXPECT_EQ(end->event.reason, "time \"limit\"\nü\uFFFD");
  const auto metrics = parse_event_line(lines[2]);
  ASSERT_TRUE(metrics.has_value());
  EXPECT_EQ(metrics->event.name, "metrics");
  EXPECT_EQ(metrics->event.step, 4);
  EXPECT_EQ(metrics->event.fields,
            (Fields{{"kind", "train"}, {"reduced_train_loss", 6.25}, {"bad", std::string("nan")}, {"on", true}}));
}

TEST(Events, DamagedLinesAreNoticed) {
  const TempDir directory;
  const auto path = directory / "events.jsonl";
  { EventsSink(path, origin()).on_event({.name = "run", .step = 1}); }
  const std::string line = test::lines_of(path)[0];
  ASSERT_TRUE(parse_event_line(line).has_value());
  for (size_t i = 0; i < line.size(); ++i) {
    std::string damaged = line;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(parse_event_line(damaged).has_value()) << i;
    EXPECT_FALSE(parse_event_line(line.substr(0, i)).has_value()) << i;
  }
  EXPECT_FALSE(parse_event_line(line + line).has_value());
  EXPECT_FALSE(parse_event_line("").has_value());
}

TEST(Events, AfterATornLineANewOneBegins) {
  const TempDir directory;
  const auto path = directory / "events.jsonl";
  { EventsSink(path, origin()).on_event({.name = "first"}); }
  test::append_to(path, R"({"time":"2026)");
  { EventsSink(path, origin()).on_event({.name = "second"}); }
  const std::vector<std::string> lines = test::lines_of(path);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(parse_event_line(lines[0])->event.name, "first");
  EXPECT_FALSE(parse_event_line(lines[1]).has_value());
  EXPECT_EQ(parse_event_line(lines[2])->event.name, "second");
}

TEST(Events, LossesAreReported) {
  const TempDir directory;
  const auto path = directory / "events.jsonl";
  set_log_console([](std::string_view) {});
  arm_failpoint("file.write=delay");
  {
    EventsSink sink(path, origin(), 2);
    for (int i = 0; i < 20; ++i) sink.on_event({.name = "step", .step = i});
    sink.flush();
    EXPECT_GT(sink.lost(), 0);
  }
  disarm_failpoints();
  set_log_console(nullptr);
  int64_t written = 0;
  int64_t reported = 0;
  int64_t last_sequence = 0;
  for (const std::string& line : test::lines_of(path)) {
    const auto logged = parse_event_line(line);
    ASSERT_TRUE(logged.has_value());
    EXPECT_GT(logged->sequence, last_sequence);
    last_sequence = logged->sequence;
    ++written;
    if (logged->event.name == "events_lost") reported += std::get<int64_t>(logged->event.fields[0].second);
  }
  EXPECT_GT(reported, 0);
  EXPECT_EQ(written + reported, last_sequence);
}

TEST(Events, AreCheapForTheCaller) {
  const TempDir directory;
  EventsSink sink(directory / "events.jsonl", origin());
  arm_failpoint("file.write=delay");
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 150; ++i) sink.on_event({.name = "step", .step = i});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  disarm_failpoints();
  EXPECT_LT(seconds, 10.0);  // so many delayed writes take fifteen seconds
}

}  // namespace
}  // namespace megalith::observe
