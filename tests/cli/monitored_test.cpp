// Ranks under a monitor: their status pages, how they are stopped, and who may die.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include "background_program.h"
#include "core/process/exit_codes.h"
#include "core/process/process_facts.h"
#include "core/process/status_page.h"
#include "core/process/status_reader.h"
#include "expect_error.h"
#include "launch/ranks/rank_process.h"
#include "launch/ranks/store_process.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

constexpr int64_t kGeneration = 3;

// What a monitor does for the ranks of one machine.
class MonitoredRanks {
 public:
  MonitoredRanks(int count, const std::string& overrides, const std::string& failpoints = "")
      : output_(std::tmpfile()) {
    store_.emplace(launch::RankProcess::Options{
        .command = &store_command_, .secret = "secret", .output = output_, .errors = output_});
    launch::ask_for_store(*store_->line(), {.generation = kGeneration, .ranks = count});
    const int port = launch::port_of_store(*store_->line(), 30.0).value();
    std::istringstream words(training() + overrides);
    for (std::string word; words >> word;) command_.push_back(word);
    for (int rank = 0; rank < count; ++rank) {
      const std::filesystem::path page = directory_ / ("page-" + std::to_string(rank));
      StatusPage::create(page, {.run = "test", .generation = kGeneration, .rank = rank});
      pages_.emplace_back(page);
      ranks_.emplace_back(launch::RankProcess::Options{
          .rank = rank,
          .command = &command_,
          .environment = {"RANK=" + std::to_string(rank), "LOCAL_RANK=" + std::to_string(rank),
                          "WORLD_SIZE=" + std::to_string(count), "MASTER_ADDR=127.0.0.1",
                          "MASTER_PORT=" + std::to_string(port), "MEGALITH_GENERATION=" + std::to_string(kGeneration),
                          "MEGALITH_STATUS_PAGE=" + page.string(), "MEGALITH_FAILPOINTS=" + failpoints},
          .secret = "secret",
          .output = output_,
          .errors = output_});
    }
  }
  ~MonitoredRanks() {
    for (launch::RankProcess& rank : ranks_) rank.send(SIGKILL);
    store_->send(SIGKILL);
    wait_until([&] { return has_ended(*store_); }, 10.0);
    for (launch::RankProcess& rank : ranks_) wait_until([&] { return has_ended(rank); }, 10.0);
    std::fclose(output_);
  }
  MonitoredRanks(const MonitoredRanks&) = delete;
  MonitoredRanks& operator=(const MonitoredRanks&) = delete;

  launch::RankProcess& rank(int rank) { return *std::next(ranks_.begin(), rank); }
  launch::RankProcess& store() { return *store_; }
  const StatusReader& page(int rank) const { return pages_[static_cast<size_t>(rank)]; }
  bool reaches(int rank, int64_t step) {
    return wait_until([&] { return page(rank).read().step >= step || has_ended(this->rank(rank)); }) &&
           page(rank).read().step >= step;
  }
  bool ends(int rank) {
    return wait_until([&] { return has_ended(this->rank(rank)); });
  }
  bool store_ends() {
    return wait_until([&] { return has_ended(*store_); });
  }

  std::string text() {
    std::string text;
    std::rewind(output_);
    char chunk[4096];
    for (size_t count = 0; (count = std::fread(chunk, 1, sizeof chunk, output_)) > 0;) text.append(chunk, count);
    std::fseek(output_, 0, SEEK_END);
    return text;
  }

 private:
  std::string training() const {
    return "train trainer.accelerator=cpu trainer.cpu_threads=1 trainer.devices=2 trainer.max_steps=1000000 "
           "model.num_layers=2 model.hidden_size=16 model.num_attention_heads=4 model.encoder_seq_length=16 "
           "model.micro_batch_size=2 model.global_batch_size=8 model.data.data_impl=mock "
           "exp_manager.explicit_log_dir=" +
           (directory_ / "run").string() + " ";
  }

  static bool has_ended(launch::RankProcess& process) {
    process.reap();
    process.output().pump();
    process.errors().pump();
    return !process.running();
  }

  TempDir directory_;
  std::FILE* output_;
  std::vector<std::string> store_command_ = {MEGALITH_PROGRAM, "serve-store"};
  std::vector<std::string> command_ = {MEGALITH_PROGRAM};
  std::optional<launch::RankProcess> store_;
  std::list<launch::RankProcess> ranks_;
  std::vector<StatusReader> pages_;
};

TEST(Monitored, RanksTellHowFarTheyAreAndStopWhenTheirPageSaysSo) {
  MonitoredRanks ranks(2, "");
  ASSERT_TRUE(ranks.reaches(0, 2) && ranks.reaches(1, 2)) << ranks.text();
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
    for (const int rank : {0, 1}) ranks.rank(rank).send(signal);
    ranks.store().send(signal);
  }
  const int64_t step = ranks.page(0).read().step;
  ASSERT_TRUE(ranks.reaches(0, step + 2)) << "no signal stops them\n" << ranks.text();

  const RankStatus status = ranks.page(1).read();
  EXPECT_EQ(status.run, "test");
  EXPECT_EQ(status.generation, kGeneration);
  EXPECT_TRUE(is_alive({.pid = status.pid, .start_ticks = status.start_ticks}));
  EXPECT_GT(status.beats, 0);
  ASSERT_GE(status.groups.size(), 3u);
  EXPECT_EQ(status.groups[0].name, "meeting");
  EXPECT_EQ(status.groups[1].name, "world");
  EXPECT_GT(status.groups[1].collectives.finished, 2);
  EXPECT_EQ(status.groups[1].members, ranks.page(0).read().groups.at(1).members);

  ranks.page(1).ask_to_stop();
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(ranks.ends(rank)) << ranks.text();
    EXPECT_EQ(ranks.rank(rank).ending()->exit_code, kExitStoppedEarly) << ranks.text();
    const RankStatus last = ranks.page(rank).read();
    EXPECT_EQ(last.ending.value().outcome, RankStatus::Outcome::stopped_early);
    EXPECT_EQ(last.persistent_step, last.step + 1);
  }
  EXPECT_NE(ranks.text().find("another rank was asked to stop"), std::string::npos) << ranks.text();
  ranks.store().line()->send(1);
  ASSERT_TRUE(ranks.store_ends());
  EXPECT_EQ(ranks.store().ending()->exit_code, 0);
}

TEST(Monitored, RanksThatAreDoneSayIt) {
  MonitoredRanks ranks(2, "trainer.max_steps=3");
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(ranks.ends(rank));
    EXPECT_EQ(ranks.rank(rank).ending()->exit_code, 0) << ranks.text();
    EXPECT_EQ(ranks.page(rank).read().ending.value().outcome, RankStatus::Outcome::complete);
  }
}

TEST(Monitored, RankZeroMayDieAndTheOthersSayWho) {
  MonitoredRanks ranks(2, "");
  ASSERT_TRUE(ranks.reaches(1, 2)) << ranks.text();
  ranks.rank(0).send(SIGKILL);
  ASSERT_TRUE(ranks.ends(1)) << ranks.text();
  const RankStatus last = ranks.page(1).read();
  EXPECT_FALSE(last.ending.value().is_done());
  EXPECT_EQ(last.ending.value().kind, ErrorKind::comm) << last.ending.value().message;
  EXPECT_EQ(last.ending.value().ranks, std::vector<int>{0}) << last.ending.value().message;
  EXPECT_EQ(ranks.text().find("does not answer"), std::string::npos) << "the store lives\n" << ranks.text();
  EXPECT_FALSE(ranks.page(0).read().ending) << "nobody could say anything";
}

// The rank that does not arrive is the one that is inside of no call.
TEST(Monitored, AHangShowsWhereItIs) {
  MonitoredRanks ranks(2, "", "engine.action=hang@rank=1,step=3,generation=3;engine.action=hang@generation=2");
  const auto waits = [&](int rank) {
    const RankStatus status = ranks.page(rank).read();
    return std::any_of(status.groups.begin(), status.groups.end(),
                       [](const RankStatus::Group& group) { return group.waits(); });
  };
  ASSERT_TRUE(ranks.reaches(1, 3)) << ranks.text();
  ASSERT_TRUE(wait_until([&] { return ranks.page(0).read().step == 3 && waits(0); })) << ranks.text();
  // On a busy machine it is on its way there for a while.
  int64_t beats = -1;
  EXPECT_TRUE(wait_until([&] {
    const int64_t before = std::exchange(beats, ranks.page(1).read().beats);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return before == beats && !waits(1);
  })) << ranks.text();
  EXPECT_EQ(ranks.page(1).read().step, 3);
  EXPECT_EQ(ranks.page(1).read().section, Section::step);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(ranks.page(1).read().beats, beats);
  EXPECT_TRUE(waits(0));
}

std::string lone_training(const TempDir& directory) {
  return "train trainer.accelerator=cpu trainer.max_steps=1 model.num_layers=1 model.hidden_size=16 "
         "model.num_attention_heads=4 model.encoder_seq_length=16 model.global_batch_size=1 model.micro_batch_size=1 "
         "model.data.data_impl=mock exp_manager.explicit_log_dir=" +
         (directory / "run").string() + " ";
}

TEST(Monitored, RefusesWhatAMonitorDoesNotDo) {
  const TempDir directory;
  const std::filesystem::path page = directory / "page";
  const auto refused = [&](const std::string& more, const std::vector<std::string>& parts, int rank = 0) {
    StatusPage::create(page, {.run = "test", .rank = rank});
    const Outcome outcome = run_program(lone_training(directory) + more, ".", "MEGALITH_STATUS_PAGE=" + page.string());
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    expect_parts(outcome.output, parts);
  };
  refused("--nproc 2", {"--nproc", "MEGALITH_STATUS_PAGE"});
  refused("'resilience.failpoints=[train.step=exit]'", {"resilience.failpoints", "monitor"});
  refused("", {"rank 7 of generation 0", "rank 0"}, 7);
  refused("trainer.max_step=3", {"trainer.max_step"});
  const RankStatus last = StatusReader(page).read();
  EXPECT_EQ(last.ending.value().kind, ErrorKind::user);
  expect_parts(last.ending.value().message, {"trainer.max_step"});
  EXPECT_FALSE(std::filesystem::exists(directory / "run"));
}

TEST(Monitored, TheStoreIsForMonitors) {
  const Outcome outcome = run_program("serve-store");
  EXPECT_EQ(outcome.exit_code, 2);
  expect_parts(outcome.output, {"MEGALITH_LAUNCHER_FD", "for monitors"});
  EXPECT_EQ(run_program("--help").output.find("serve-store"), std::string::npos);
  EXPECT_EQ(run_program("completion bash").output.find("serve-store"), std::string::npos);
}

}  // namespace
}  // namespace megalith::cli::testing
