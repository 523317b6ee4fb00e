#include "observe/report/report.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "expect_error.h"
#include "golden_data.h"
#include "observe/example_run.h"
#include "observe/files.h"
#include "observe/report/report_run.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using testing::TempDir;

TEST(Report, IsSelfContained) {
  const TempDir directory;
  test::write_example_run(directory.path());
  const std::string html = test::bytes_of(write_report(directory.path()));
  for (const char* part : {"run my &lt;run&gt;, ", "12,345", "6.1000", "6.6000", "<svg", "&lt;b&gt;bold",
                           "prefers-color-scheme", "name=\"viewport\"", "default-src 'none'", "id=\"loss\"",
                           "id=\"throughput\"", "id=\"step-time-distribution\"", "id=\"where-the-time-went\"",
                           "id=\"goodput-timeline\"", "id=\"memory\"", "not finite in 1 steps, first in step 7"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  for (const char* part : {"http://", "https://", "<script src", "<b>bold"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
}

TEST(Report, LaysRunsOverEachOther) {
  const TempDir directory;
  test::write_example_run(directory / "a/run");
  test::write_example_run(directory / "b/run", 0, 30);
  std::ofstream(directory / "b/run/hparams.yaml") << "trainer:\n  max_steps: 30\n";
  const std::filesystem::path page = directory / "compare.html";
  EXPECT_EQ(write_report({.runs = {directory / "a/run", directory / "b/run"}, .page = page}).size(), 1u);
  const std::string html = test::bytes_of(page);
  for (const char* part : {"a/run", "b/run", "Side by side", "Smooth loss at step 29", "id=\"loss-by-time\"",
                           "var(--run0)", "var(--run1)", "Settings that differ", "trainer.max_steps"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

TEST(Report, ComparesByTokensOnlyWhereAllAreKnown) {
  const TempDir directory;
  for (const char* name : {"a", "b", "c"}) test::write_example_run(directory / name);
  std::ofstream(directory / "b/hparams.yaml") << "model:\n  global_batch_size: 8\n  encoder_seq_length: 32\n";
  const std::filesystem::path page = directory / "compare.html";
  write_report({.runs = {directory / "a", directory / "b", directory / "c"}, .page = page});
  EXPECT_NE(test::bytes_of(page).find("million tokens"), std::string::npos);
  std::filesystem::remove(directory / "c/hparams.yaml");
  write_report({.runs = {directory / "a", directory / "b", directory / "c"}, .page = page});
  EXPECT_EQ(test::bytes_of(page).find("million tokens"), std::string::npos);
}

TEST(Report, DrawsEachPictureAsPng) {
  const TempDir directory;
  test::write_example_run(directory / "run");
  const auto written = write_report({.runs = {directory / "run"}, .pictures = directory / "png"});
  EXPECT_GE(written.size(), 6u);
  for (const std::filesystem::path& path : written) EXPECT_TRUE(test::bytes_of(path).starts_with("\x89PNG")) << path;
  EXPECT_TRUE(std::filesystem::exists(directory / "png/loss.png"));
}

TEST(Report, OfNothingIsAUserError) {
  const TempDir directory;
  EXPECT_THROW(write_report(directory.path()), Error);
  std::ofstream(directory / "events.jsonl") << "garbage\n\nmore garbage\n";
  expect_error(ErrorKind::user, {"2 lines could not be read"}, [&] { write_report(directory.path()); });
}

TEST(Report, OfTheGoldenRun) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const TempDir directory;
  std::filesystem::copy_file(golden / "dllogger" / "dllogger.json", directory / "dllogger.json");
  const std::string html = test::bytes_of(write_report(directory.path()));
  EXPECT_NE(html.find("7.9724"), std::string::npos);
  EXPECT_NE(html.find("id=\"throughput\""), std::string::npos);  // from the batch in the parameters
}

TEST(NamesOf, RunsTellThemApart) {
  EXPECT_EQ(names_of({"/x/a/run", "/x/b/run/"}), (std::vector<std::string>{"a/run", "b/run"}));
  EXPECT_EQ(names_of({"/x/a"}), (std::vector<std::string>{"a"}));
}

}  // namespace
}  // namespace megalith::observe
