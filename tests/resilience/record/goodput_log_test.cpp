#include "resilience/record/goodput_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "core/event_names.h"
#include "core/file.h"
#include "expect_error.h"
#include "observe/goodput/goodput.h"
#include "observe/logs/event_reader.h"
#include "observe/sinks/event_text.h"
#include "resilience/record/journal.h"
#include "resilience/record/roster.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

constexpr double kBegin = 1.7e9;
constexpr const char* kRun = "run-1";

Roster roster_of(int64_t generation, int64_t nodes) {
  Roster roster{.run = kRun,
                .term = 1,
                .generation = generation,
                .world_size = nodes,
                .ranks_per_node = 1,
                .config = "name: run",
                .store_node = "node0"};
  for (int64_t index = 0; index < nodes; ++index)
    roster.nodes.push_back({.node = fmt::format("node{}", index), .index = index, .address = "127.0.0.1"});
  return roster;
}

// The directory of a run of three nodes, of which one is lost. `look` is called after everything that is written down.
class WrittenRun {
 public:
  explicit WrittenRun(std::function<void()> look = [] {}) : control_(directory_.path()), look_(std::move(look)) {}

  std::filesystem::path path() const { return directory_.path(); }

  void train_with_a_fault() {
    Journal journal = *Journal::claim(control_, 1, {.run = kRun, .boot_id = "boot"});
    note(journal, 0, {.kind = FactKind::lead, .number = 1});
    start(journal, 1.5, 1, 3);
    emit(2, 1, event::kJobStarted);
    emit(4, 1, event::kCheckpointLoaded, 0);
    emit(8, 1, event::kCheckpointSaved, 4);
    emit(9, 1, event::kCheckpointSaved, 5);
    note(journal, 12, {.kind = FactKind::fault, .generation = 1, .symptom = Symptom::node_gone});
    start(journal, 15, 2, 2);
    emit(16, 2, event::kJobStarted);
    emit(18, 2, event::kCheckpointLoaded, 5);
    emit(30, 2, event::kCheckpointSaved, 20);
    note(journal, 31, {.kind = FactKind::stop_requested, .generation = 2});
    emit(32, 2, event::kJobTerminated, 21);
  }

 private:
  static Moment moment(double seconds) { return {.wall = kBegin + seconds, .monotonic = 100 + seconds}; }

  void note(Journal& journal, double seconds, const Fact& fact) {
    journal.append(fact, moment(seconds));
    journal.sync();
    look_();
  }

  void start(Journal& journal, double seconds, int64_t generation, int64_t nodes) {
    ASSERT_EQ(claim_roster(control_, roster_of(generation, nodes)), Claim::taken);
    note(journal, seconds, {.kind = FactKind::claimed, .generation = generation});
  }

  void emit(double seconds, int64_t generation, const char* name, int64_t step = -1) {
    std::ofstream(path() / "events.jsonl", std::ios::app)
        << observe::event_text({.name = name, .step = step, .when = moment(seconds)},
                               {.run_id = kRun, .generation = generation, .node = "node0"}, "boot", ++sequence_);
    look_();
  }

  testing::TempDir directory_;
  DiskControlDirectory control_;
  std::function<void()> look_;
  int64_t sequence_ = 0;
};

// What one supervisor writes that is there from the beginning to the end.
std::string written_by_one(const std::filesystem::path& log) {
  std::optional<GoodputLog> goodput;
  WrittenRun run([&] { goodput->follow(); });
  goodput.emplace(log, run.path(), kRun);
  run.train_with_a_fault();
  return read_text(log);
}

TEST(GoodputLog, GivesTheNumbersThatTheRunsOwnLogsGive) {
  const testing::TempDir dir;
  const std::filesystem::path log = dir.path() / "goodput.log";
  WrittenRun run;
  run.train_with_a_fault();
  GoodputLog(log, run.path(), kRun).follow();
  const observe::RunEvents googles = observe::read_run_events(log, kRun);
  const observe::RunEvents own = observe::read_run_events(run.path() / "events.jsonl", kRun);
  EXPECT_EQ(googles.format, observe::EventFormat::google);
  EXPECT_EQ(googles.bad_lines, 0);
  EXPECT_EQ(googles.lines, 1 + 3 + 1 + 2 + 2 + 1 + 1 + 1 + 2) << "starts and ends come from every node";
  const observe::Goodput of_google = observe::measure_goodput(googles, 1.0);
  EXPECT_EQ(observe::goodput_table(googles, of_google),
            observe::goodput_table(own, observe::measure_goodput(own, 1.0)));
  EXPECT_EQ(of_google.starts, 2);
  EXPECT_EQ(of_google.loads, 1) << "one that began at step 0 does not count";
  EXPECT_EQ(of_google.saves, 3);
  EXPECT_EQ(of_google.runtime_seconds, 32.0);
  ASSERT_TRUE(of_google.progress.has_value());
  EXPECT_EQ(of_google.progress->steps(), 20);
}

TEST(GoodputLog, SupervisorsThatTakeOverTellNothingTwice) {
  const testing::TempDir dir;
  const std::string alone = written_by_one(dir.path() / "alone.log");
  const std::filesystem::path log = dir.path() / "goodput.log";
  std::filesystem::path directory;
  WrittenRun run([&] { GoodputLog(log, directory, kRun).follow(); });
  directory = run.path();
  run.train_with_a_fault();
  EXPECT_EQ(read_text(log), alone);
}

TEST(GoodputLog, GoesOnAfterATornLineAndBesideOtherJobs) {
  const testing::TempDir dir;
  const std::string alone = written_by_one(dir.path() / "alone.log");
  const std::string foreign =
      R"({"timestamp": "2025-04-02T06:08:24.318726", "job_name": "other", "event_type": "user_scheduled"})"
      "\n";
  const std::filesystem::path log = dir.path() / "goodput.log";
  const observe::RunEvents whole = observe::read_run_events(dir.path() / "alone.log", kRun);
  const std::string expected = observe::goodput_table(whole, observe::measure_goodput(whole, 1.0));
  WrittenRun run;
  run.train_with_a_fault();
  for (size_t size = 0; size < alone.size(); size += 7) {
    const std::string begun = alone.substr(0, size);
    std::ofstream(log) << foreign << begun;
    GoodputLog(log, run.path(), kRun).follow();
    const observe::RunEvents read = observe::read_run_events(log, kRun);
    const bool is_torn = !begun.empty() && begun.back() != '\n' && begun.back() != '}';
    EXPECT_EQ(read.bad_lines, is_torn ? 1 : 0) << begun;
    EXPECT_EQ(observe::goodput_table(read, observe::measure_goodput(read, 1.0)), expected) << begun;
  }
}

TEST(GoodputLog, RefusesAFileThatCannotBeWritten) {
  const testing::TempDir dir;
  expect_error(ErrorKind::user, {"resilience.goodput_log", "absent"},
               [&] { GoodputLog(dir.path() / "absent" / "goodput.log", dir.path(), kRun); });
}

}  // namespace
}  // namespace megalith::resilience
