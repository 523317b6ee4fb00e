#include "observe/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/telemetry.h"
#include "golden_data.h"
#include "observe/dllogger.h"
#include "observe/events.h"
#include "observe/files.h"
#include "observe/run_history.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using testing::TempDir;

void write_example_run(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory / "dllogger/rank-0");
  std::ofstream(directory / "hparams.yaml") << "trainer:\n  name: <b>bold</b>\n";
  Telemetry telemetry;
  telemetry.add(std::make_shared<DlloggerSink>(directory / "dllogger/rank-0/dllogger.json",
                                               nlohmann::ordered_json{{"cfg/a", 1}}));
  telemetry.add(
      std::make_shared<EventsSink>(directory / "events.jsonl", EventOrigin{.run_id = "my <run>", .node = "h"}));
  for (int64_t step = 0; step < 40; ++step) {
    const Span span(telemetry, "step", step);
    const double loss = step == 7 ? std::nan("") : 10.0 - 0.1 * static_cast<double>(step);
    telemetry.emit(Metrics{.kind = "train",
                           .step = step,
                           .values = {{"reduced_train_loss", loss},
                                      {"train_step_timing in s", 1.0},
                                      {"step_time", 0.5},
                                      {"tokens_per_second", 12345.0}}});
    if (step % 10 == 9)
      telemetry.emit(Metrics{.kind = "validation", .step = step, .values = {{"val_loss", loss + 0.5}}});
  }
  telemetry.emit(Event{.name = "run", .phase = Phase::begin, .id = 1000});
}

TEST(RunHistory, ReadsWhatWasLogged) {
  const TempDir directory;
  write_example_run(directory.path());
  test::append_to(directory / "events.jsonl", "{\"torn");
  const RunHistory history = read_run_history(directory.path());
  EXPECT_EQ(history.train_loss.size(), 40u);
  EXPECT_TRUE(std::isnan(history.train_loss.at(7)));
  EXPECT_EQ(history.validation_loss.size(), 4u);
  EXPECT_EQ(median(history.step_seconds), 0.5);
  EXPECT_EQ(median(history.tokens_per_second), 12345.0);
  EXPECT_EQ(history.spans.at("step").ended, 40);
  EXPECT_EQ(history.spans.at("run").open, 1);
  EXPECT_EQ(history.unreadable_lines, 1);
  EXPECT_EQ(history.run_id, "my <run>");
}

TEST(Report, IsSelfContained) {
  const TempDir directory;
  write_example_run(directory.path());
  const std::string html = test::bytes_of(write_report(directory.path()));
  for (const char* part : {"run my &lt;run&gt;, ", "12,345", "6.1000", "6.6000", "<svg", "&lt;b&gt;bold",
                           "prefers-color-scheme", "name=\"viewport\"", "Where the time went"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  for (const char* part : {"http://", "https://", "<script", "<b>bold"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
}

TEST(Report, OfNothingIsAUserError) {
  const TempDir directory;
  EXPECT_THROW(write_report(directory.path()), Error);
}

TEST(Report, OfTheGoldenRun) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const TempDir directory;
  std::filesystem::copy_file(golden / "dllogger" / "dllogger.json", directory / "dllogger.json");
  EXPECT_NE(test::bytes_of(write_report(directory.path())).find("7.9724"), std::string::npos);
}

}  // namespace
}  // namespace megalith::observe
