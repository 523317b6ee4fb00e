#include "observe/logs/event_reader.h"

#include <gtest/gtest.h>

#include "golden_data.h"
#include "observe/event_lines.h"
#include "observe/files.h"
#include "observe/sinks/events.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using test::google_line;
using test::step_line;
using test::to_line;
using testing::TempDir;

RunEvents collect(const std::vector<std::string>& lines, const std::string& job = "") {
  EventCollector collector(job);
  for (const std::string& line : lines) collector.take(line);
  return std::move(collector).finish();
}

TEST(EventReader, ReadsWhatTheSinkWrites) {
  const TempDir directory;
  const auto path = directory / "events.jsonl";
  {
    Telemetry telemetry;
    telemetry.add(std::make_shared<EventsSink>(path, EventOrigin{.run_id = "run \"7\""}));
    telemetry.emit(Event{.name = "job_started", .step = 0});
    telemetry.emit(Event{.name = "checkpoint_loaded", .step = 0});
    telemetry.emit(Metrics{.kind = "train", .step = 0, .values = {{"step_time", 0.5}, {"data_wait", 0.25}}});
    telemetry.emit(Metrics{.kind = "validation", .step = 0, .values = {{"val_loss", 1.0}}});
    telemetry.emit(Event{.name = "job_terminated", .reason = "out of memory"});
  }
  const RunEvents log = read_run_events(path);
  EXPECT_EQ(log.format, EventFormat::megalith);
  EXPECT_EQ(log.job, "run \"7\"");
  EXPECT_EQ(log.bad_lines, 0);
  ASSERT_EQ(log.events.size(), 4u);
  EXPECT_EQ(log.events[2].kind, RunEventKind::train_step);
  EXPECT_EQ(log.events[2].seconds, 0.5F);
  EXPECT_EQ(log.events[2].data_wait, 0.25F);
  EXPECT_FALSE(log.events[3].planned);
  EXPECT_EQ(log.reasons[log.events[3].reason], "out of memory");
}

TEST(EventReader, ReadsTheGoldenLog) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const RunEvents log = read_run_events(golden / "goodput" / "event_log.jsonl");
  EXPECT_EQ(log.format, EventFormat::google);
  EXPECT_EQ(log.lines, 7798);
  EXPECT_EQ(log.bad_lines, 0);
  EXPECT_EQ(log.duplicate_lines, 0);
  EXPECT_TRUE(log.steps_are_floats);
  EXPECT_EQ(log.jobs, (std::map<std::string, int64_t>{{"test-040104-goodput-n112-70b-a3m", 7798}}));
}

TEST(EventReader, DamagedAndForeignLinesAreCounted) {
  const std::string good = step_line(1.7e9, 0, 1.0);
  std::string damaged = good;
  damaged[40] ^= 1;
  const RunEvents log = collect({good, damaged, good.substr(0, 50), "garbage", "{}", google_line(1, "job_exploded"),
                                 R"({"event_type": "job_started", "job_name": "job", "timestamp": "soon"})"});
  EXPECT_EQ(log.lines, 7);
  EXPECT_EQ(log.bad_lines, 6);
  EXPECT_EQ(log.events.size(), 1u);
}

TEST(EventReader, OrderAndRepetitionDoNotMatter) {
  const std::vector<std::string> lines{google_line(0, "job_started"), google_line(10, "checkpoint_loaded", 0),
                                       google_line(20, "checkpoint_saved", 5), google_line(30, "job_terminated")};
  const RunEvents expected = collect(lines);
  const RunEvents log = collect({lines[3], lines[1], lines[1], lines[2], lines[0], lines[2], lines[2]});
  EXPECT_EQ(log.events, expected.events);
  EXPECT_EQ(log.duplicate_lines, 3);
}

TEST(EventReader, TakesEntriesOfCloudLogging) {
  const RunEvents log =
      collect({R"({"logName": "projects/p/logs/job-goodput", "timestamp": "2025-04-02T06:00:01Z", "jsonPayload": )" +
               google_line(0, "checkpoint_saved", 5) + "}"});
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].step, 5);
  EXPECT_EQ(log.job, "job");
}

TEST(EventReader, KeepsOneJobAndNamesTheOthers) {
  const std::vector<std::string> lines{to_line({.time = 1.7e9, .event = "job_started", .run = "a"}),
                                       to_line({.time = 1.7e9 + 1, .event = "job_started", .run = "b"}),
                                       to_line({.time = 1.7e9 + 2, .event = "job_terminated", .run = "b"})};
  EXPECT_EQ(collect(lines).events.size(), 1u);
  const RunEvents log = collect(lines, "b");
  EXPECT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.jobs, (std::map<std::string, int64_t>{{"a", 1}, {"b", 2}}));
  EXPECT_TRUE(collect(lines, "c").events.empty());
}

// Somebody sets the clock of the machine an hour back, then a machine takes over whose clock was always behind.
TEST(EventReader, ClocksMayStep) {
  const RunEvents log = collect(
      {to_line({.time = 1.7e9, .event = "job_started", .monotonic = 100.0}),
       to_line({.time = 1.7e9 - 3590.0, .event = "checkpoint_loaded", .step = 0, .monotonic = 110.0}),
       to_line({.time = 1.7e9 - 3580.0, .event = "job_terminated", .monotonic = 120.0}),
       to_line({.time = 1.6e9, .event = "job_started", .generation = 1, .boot = "boot-2", .monotonic = 7.0}),
       to_line(
           {.time = 1.6e9 + 5.0, .event = "job_terminated", .generation = 1, .boot = "boot-2", .monotonic = 12.0})});
  ASSERT_EQ(log.events.size(), 5u);
  EXPECT_EQ(log.clock_steps, 2);
  const int64_t begin = log.events[0].micros;
  EXPECT_EQ(log.events[1].micros - begin, 10'000'000);
  EXPECT_EQ(log.events[2].micros - begin, 20'000'000);
  EXPECT_EQ(log.events[4].micros - begin, 25'000'000);
}

TEST(EventReader, ThousandsOfNodesTakeTheSpaceOfTwo) {
  std::vector<std::string> lines;
  for (int i = 0; i < 3000; ++i) lines.push_back(google_line(i * 0.01, "job_started"));
  lines.push_back(google_line(15.005, "checkpoint_loaded", 3));
  const RunEvents log = collect(lines);
  EXPECT_EQ(log.events.size(), 5u);  // two of each run of starts, and the load between them
  EXPECT_EQ(log.duplicate_lines, 0);
}

}  // namespace
}  // namespace megalith::observe
