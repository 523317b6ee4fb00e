#include "observe/sinks/events.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/clock.h"
#include "core/process/failpoint.h"
#include "observe/files.h"
#include "observe/logs/event_line.h"
#include "observe/sinks/log_files.h"
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
    { const Span span(telemetry, "checkpoint_save", 20, {{"bytes", int64_t{5}}}); }
    telemetry.emit(Metrics{
        .kind = "train", .step = 4, .values = {{"reduced_train_loss", 6.25}, {"bad", std::nan("")}, {"on", true}}});
    telemetry.emit(Event{.name = "job_terminated", .reason = "time \"limit\"\nü\xff"});
    telemetry.flush();
    EXPECT_EQ(test::lines_of(path).size(), 4u);
  }
  const std::vector<std::string> lines = test::lines_of(path);
  std::vector<JsonMember> of_begin;
  const auto begin = parse_event_line(lines[0], of_begin);
  ASSERT_TRUE(begin.has_value());
  EXPECT_EQ(text_of(begin->run), "run-1");
  EXPECT_EQ(begin->generation, 2);
  EXPECT_EQ(begin->rank, 3);
  EXPECT_EQ(text_of(begin->node), "host");
  EXPECT_EQ(begin->sequence, 1);
  EXPECT_NEAR(static_cast<double>(begin->wall) / 1e6, wall_seconds(), 60.0);
  EXPECT_GT(begin->boot.size(), 6u);
  EXPECT_EQ(begin->event, "checkpoint_save");
  EXPECT_EQ(begin->phase, Phase::begin);
  EXPECT_EQ(begin->step, 20);
  EXPECT_EQ(begin->number("bytes"), 5.0);
  EXPECT_EQ(begin->field("event"), nullptr) << "a member of the line is no field";
  std::vector<JsonMember> of_end;
  const auto end = parse_event_line(lines[1], of_end);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->id, begin->id);
  EXPECT_EQ(end->phase, Phase::end);
  EXPECT_GE(end->duration, 0.0);
  EXPECT_GE(end->monotonic, begin->monotonic);
  std::vector<JsonMember> of_metrics;
  const auto metrics = parse_event_line(lines[2], of_metrics);
  ASSERT_TRUE(metrics.has_value());
  EXPECT_EQ(metrics->event, "metrics");
  EXPECT_EQ(metrics->step, 4);
  EXPECT_EQ(metrics->field("kind")->text, "train");
  EXPECT_EQ(metrics->number("reduced_train_loss"), 6.25);
  EXPECT_EQ(metrics->field("bad")->text, "nan");
  EXPECT_EQ(metrics->field("on")->text, "true");
  std::vector<JsonMember> of_terminated;
  const auto terminated = parse_event_line(lines[3], of_terminated);
  ASSERT_TRUE(terminated.has_value());
  EXPECT_EQ(text_of(terminated->reason), "time \"limit\"\nü\uFFFD");
}

TEST(Events, DamagedLinesAreNoticed) {
  const TempDir directory;
  std::vector<JsonMember> scratch;
  const auto is_readable = [&](const std::string& text) { return parse_event_line(text, scratch).has_value(); };
  const auto path = directory / "events.jsonl";
  { EventsSink(path, origin()).on_event({.name = "run", .step = 1}); }
  const std::string line = test::lines_of(path)[0];
  ASSERT_TRUE(is_readable(line));
  for (size_t i = 0; i < line.size(); ++i) {
    std::string damaged = line;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(is_readable(damaged)) << i;
    EXPECT_FALSE(is_readable(line.substr(0, i))) << i;
  }
  EXPECT_FALSE(is_readable(line + line));
  EXPECT_FALSE(is_readable(""));
  EXPECT_FALSE(is_readable(with_crc(R"({"event":"job_started","step":1)"))) << "members are missing";
}

TEST(Events, AfterATornLineANewOneBegins) {
  const TempDir directory;
  const auto path = directory / "events.jsonl";
  { EventsSink(path, origin()).on_event({.name = "first"}); }
  test::append_to(path, R"({"time":"2026)");
  { EventsSink(path, origin()).on_event({.name = "second"}); }
  const std::vector<std::string> lines = test::lines_of(path);
  ASSERT_EQ(lines.size(), 3u);
  std::vector<JsonMember> scratch;
  EXPECT_EQ(parse_event_line(lines[0], scratch)->event, "first");
  EXPECT_FALSE(parse_event_line(lines[1], scratch).has_value());
  EXPECT_EQ(parse_event_line(lines[2], scratch)->event, "second");
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
  std::vector<JsonMember> scratch;
  for (const std::string& line : test::lines_of(path)) {
    const auto logged = parse_event_line(line, scratch);
    ASSERT_TRUE(logged.has_value());
    EXPECT_GT(logged->sequence, last_sequence);
    last_sequence = logged->sequence;
    ++written;
    if (logged->event == "events_lost") reported += static_cast<int64_t>(logged->number("count").value());
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
