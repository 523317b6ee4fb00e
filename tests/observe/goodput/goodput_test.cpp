#include "observe/goodput/goodput.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden_data.h"
#include "observe/event_lines.h"
#include "observe/logs/event_reader.h"

namespace megalith::observe {
namespace {

using test::google_line;

RunEvents collect(const std::vector<std::string>& lines) {
  EventCollector collector("");
  for (const std::string& line : lines) collector.take(line);
  return std::move(collector).finish();
}

TEST(Goodput, OfTheGoldenLog) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const RunEvents log = read_run_events(golden / "goodput" / "event_log.jsonl", "test-040104-goodput-n112-70b-a3m");
  const Goodput goodput = measure_goodput(log, 8.0);
  EXPECT_EQ(goodput.events, 193);
  EXPECT_EQ(goodput.starts, 48);
  EXPECT_EQ(goodput.loads, 44);
  EXPECT_EQ(goodput.saves, 96);
  EXPECT_EQ(goodput.runtime_seconds, 35364.285491);
  ASSERT_TRUE(goodput.progress.has_value());
  EXPECT_EQ(goodput.progress->min_loaded_step, 40);
  EXPECT_EQ(goodput.progress->max_saved_step, 1960);
  EXPECT_EQ(goodput.progress->effective_seconds, 15360.0);
  EXPECT_EQ(goodput.percentage(), 43.43365004195837);

  const auto json = goodput_json(log, goodput, explain_wall_time(log, 8.0));
  EXPECT_EQ(json.at("goodput_percentage"), 43.43365004195837);
  EXPECT_EQ(json.at("step_diff").dump(), "1920.0");
  EXPECT_EQ(json.at("job_intervals").dump(), "[]");
  double explained = 0.0;
  for (const auto& [use, seconds] : json.at("wall_time").at("seconds").items()) {
    if (use != "unknown") explained += seconds.get<double>();
  }
  EXPECT_GE(explained, 0.99 * 35364.0);
}

// The unit test of Google's calculator: quarter of an hour, steps 100 to 200 at 8 s.
TEST(Goodput, OfAQuarterOfAnHour) {
  const RunEvents log = collect({google_line(0, "user_scheduled"), google_line(60, "job_started"),
                                 google_line(120, "checkpoint_loaded", 100), google_line(600, "checkpoint_saved", 200),
                                 google_line(900, "job_terminated")});
  const Goodput goodput = measure_goodput(log, 8.0);
  EXPECT_EQ(goodput.events, 5);
  EXPECT_EQ(goodput.runtime_seconds, 900.0);
  EXPECT_EQ(goodput.progress->effective_seconds, 800.0);
  EXPECT_EQ(goodput_table(log, goodput),
            "\n=== Goodput Analysis for Job: job ===\n\n"
            "+------------------------------------+---------+\n"
            "| Metric                             | Value   |\n"
            "+====================================+=========+\n"
            "| Total Events                       | 5       |\n"
            "+------------------------------------+---------+\n"
            "| Job Started Count                  | 1       |\n"
            "+------------------------------------+---------+\n"
            "| Checkpoints Loaded                 | 1       |\n"
            "+------------------------------------+---------+\n"
            "| Checkpoints Saved                  | 1       |\n"
            "+------------------------------------+---------+\n"
            "| Total Runtime (hours)              | 0.25    |\n"
            "+------------------------------------+---------+\n"
            "| Min Loaded Step                    | 100     |\n"
            "+------------------------------------+---------+\n"
            "| Max Saved Step                     | 200     |\n"
            "+------------------------------------+---------+\n"
            "| Step Difference                    | 100     |\n"
            "+------------------------------------+---------+\n"
            "| Effective Computation Time (hours) | 0.22    |\n"
            "+------------------------------------+---------+\n"
            "| Goodput Percentage                 | 88.89%  |\n"
            "+------------------------------------+---------+\n");
}

TEST(Goodput, WithoutProgressOrReferenceIsZero) {
  const RunEvents log = collect({google_line(0, "job_started"), google_line(1, "job_started"),
                                 google_line(10, "checkpoint_loaded", 0), google_line(20, "job_terminated")});
  const Goodput goodput = measure_goodput(log, 8.0);
  EXPECT_EQ(goodput.events, 4);  // with the scheduling that nobody told
  EXPECT_EQ(goodput.starts, 1);
  EXPECT_EQ(goodput.loads, 0);
  EXPECT_FALSE(goodput.progress.has_value());
  EXPECT_EQ(goodput.percentage(), 0.0);
  EXPECT_EQ(measure_goodput({}, 8.0).events, 0);
  const RunEvents saved = collect({google_line(0, "checkpoint_loaded", 0), google_line(20, "checkpoint_saved", 4)});
  EXPECT_FALSE(measure_goodput(saved, std::nullopt).progress.has_value());
}

TEST(Goodput, TablesNameEveryUseAndIncident) {
  const RunEvents log = collect({google_line(0, "job_started"), google_line(10, "checkpoint_loaded", 0),
                                 google_line(20, "checkpoint_saved", 10), google_line(30, "checkpoint_saved", 20),
                                 google_line(45, "job_terminated"), google_line(60, "job_started"),
                                 google_line(70, "checkpoint_loaded", 20), google_line(80, "checkpoint_saved", 30)});
  const WallTime wall = explain_wall_time(log);
  const std::string text = wall_time_tables(wall);
  for (size_t use = 0; use < kTimeUses; ++use) {
    const bool is_named = text.find(label_of(static_cast<TimeUse>(use))) != std::string::npos;
    EXPECT_EQ(is_named, !is_of_supervisor(static_cast<TimeUse>(use))) << use << ": there was none";
  }
  EXPECT_NE(text.find("1 incident ("), std::string::npos) << text;
  EXPECT_NE(text.find("job_terminated"), std::string::npos) << text;
  EXPECT_NE(slice_table(wall).find("detection"), std::string::npos);
}

}  // namespace
}  // namespace megalith::observe
