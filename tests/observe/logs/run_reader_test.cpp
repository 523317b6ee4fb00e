#include "observe/logs/run_reader.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "expect_error.h"
#include "observe/example_run.h"
#include "observe/files.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using testing::TempDir;

TEST(RunHistory, ReadsWhatWasLogged) {
  const TempDir directory;
  test::write_example_run(directory.path());
  test::append_to(directory / "events.jsonl", "{\"torn");
  const RunHistory history = read_run_history(directory.path());
  EXPECT_EQ(history.curve("reduced_train_loss").size(), 40u);
  EXPECT_TRUE(std::isnan(*history.curve("reduced_train_loss").at(7)));
  EXPECT_EQ(history.validation_loss.size(), 4u);
  EXPECT_EQ(median(history.curve("step_time")), 0.5);
  EXPECT_EQ(median(history.curve("tokens_per_second")), 12345.0);
  EXPECT_TRUE(history.curve("mfu").empty());
  EXPECT_EQ(history.spans.at("step").ended, 40);
  EXPECT_EQ(history.spans.at("run").open, 1);
  EXPECT_EQ(history.unreadable_lines, 1);
  EXPECT_EQ(history.run_id, "my <run>");
  EXPECT_EQ(history.last_step, 39);
  EXPECT_EQ(history.max_steps(), 100);
  EXPECT_EQ(history.tokens_per_step(), 128.0);
  EXPECT_EQ(history.slowest_ranks.at(3), 40);
  EXPECT_EQ(history.memory.at("weights"), 3.0 * 1024 * 1024);
  EXPECT_FALSE(history.complete());
  EXPECT_FALSE(history.end.has_value());
}

TEST(RunHistory, KnowsWhatFollowedInTheStoredConfig) {
  const TempDir directory;
  test::write_example_run(directory.path());
  std::ofstream(directory / "hparams.yaml")
      << "config_version: 2\nmodel:\n  global_batch_size: 4\n  rampup_batch_size: [2, 2, 8]\n  encoder_seq_length: 16\n"
         "  data:\n    data_impl: auto  # mock\n    seq_length: 0  # 16\n";
  const RunHistory history = read_run_history(directory.path());
  EXPECT_EQ(history.settings.at("model.data.data_impl"), "mock");
  EXPECT_EQ(history.settings.at("model.data.seq_length"), "16");
  EXPECT_FALSE(history.tokens_per_step().has_value()) << "steps have different batches";
}

TEST(RunHistory, OfADlloggerFileAlone) {
  const TempDir directory;
  test::write_example_run(directory.path());
  std::filesystem::remove(directory / "events.jsonl");
  std::filesystem::remove(directory / "hparams.yaml");
  const RunHistory history = read_run_history(directory.path());
  EXPECT_EQ(history.curve("reduced_train_loss").size(), 40u);
  EXPECT_EQ(median(history.curve("step_time")), 1.0);
  EXPECT_EQ(history.settings.at("model.a"), "1");
}

TEST(RunReader, FollowsARunWithoutReadingALineTwice) {
  const TempDir directory;
  RunReader reader(directory.path());
  EXPECT_FALSE(reader.poll());
  test::write_example_run(directory.path(), 0, 10);
  EXPECT_TRUE(reader.poll());
  EXPECT_EQ(reader.history().last_step, 9);
  EXPECT_FALSE(reader.poll());
  // Started again from an earlier step.
  test::write_example_run(directory.path(), 5, 10);
  EXPECT_TRUE(reader.poll());
  EXPECT_EQ(reader.history().last_step, 14);
  EXPECT_EQ(reader.history().curve("reduced_train_loss").size(), 15u);
  EXPECT_EQ(reader.history().starts.size(), 2u);
  EXPECT_EQ(reader.history().slowest_ranks.at(3), 20);
}

TEST(RunReader, WaitsForTheEndOfALine) {
  const TempDir directory;
  test::write_example_run(directory.path(), 0, 2);
  const std::string lines = test::bytes_of(directory / "events.jsonl");
  std::filesystem::remove_all(directory / "dllogger");
  std::ofstream(directory / "events.jsonl", std::ios::trunc) << lines.substr(0, lines.size() - 20);
  RunReader reader(directory.path());
  reader.poll();
  EXPECT_EQ(reader.history().unreadable_lines, 0);
  test::append_to(directory / "events.jsonl", lines.substr(lines.size() - 20));
  EXPECT_TRUE(reader.poll());
  EXPECT_EQ(reader.history().unreadable_lines, 0);
  EXPECT_EQ(reader.history().spans.at("run").open, 1);
}

TEST(RunReader, StartsOverWhereTheLogWasReplaced) {
  const TempDir directory;
  test::write_example_run(directory.path(), 0, 20);
  RunReader reader(directory.path());
  reader.poll();
  std::filesystem::remove(directory / "events.jsonl");
  test::write_example_run(directory.path(), 0, 5);
  EXPECT_TRUE(reader.poll());
  reader.poll();
  EXPECT_EQ(reader.history().curve("reduced_train_loss").size(), 5u);
}

TEST(CheckHoldsRun, SaysWhatIsThere) {
  const TempDir directory;
  std::ofstream(directory / "notes.txt") << "hello";
  expect_error(ErrorKind::user, {"notes.txt"}, [&] { check_holds_run(directory.path()); });
  EXPECT_THROW(check_holds_run(directory / "notes.txt"), Error);
  EXPECT_THROW(check_holds_run(directory / "missing"), Error);
  test::write_example_run(directory.path());
  EXPECT_NO_THROW(check_holds_run(directory.path()));
}

}  // namespace
}  // namespace megalith::observe
