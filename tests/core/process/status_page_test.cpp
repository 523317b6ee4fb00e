#include "core/process/status_page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "core/file.h"
#include "core/process/process_facts.h"
#include "core/process/status_page_bytes.h"
#include "core/process/status_reader.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith {
namespace {

class StatusPageTest : public ::testing::Test {
 protected:
  StatusPageTest() { StatusPage::create(path_, {.run = "run-7", .generation = 3, .rank = 5}); }

  RankStatus read() const { return StatusReader(path_).read(); }

  testing::TempDir directory_;
  std::filesystem::path path_ = directory_ / "rank-5";
};

TEST_F(StatusPageTest, SaysWhoseItIsBeforeTheRankIsThere) {
  const RankStatus status = read();
  EXPECT_EQ(status.run, "run-7");
  EXPECT_EQ(status.generation, 3);
  EXPECT_EQ(status.rank, 5);
  EXPECT_EQ(status.pid, 0);
  EXPECT_EQ(status.section, Section::boot);
  EXPECT_GT(status.section_began, 0.0);
  EXPECT_EQ(status.step, -1);
  EXPECT_TRUE(status.groups.empty());
  EXPECT_FALSE(status.ending);
  EXPECT_FALSE(status.stop_is_asked);
}

TEST_F(StatusPageTest, TellsHowFarARankHasCome) {
  StatusPage page(path_, 5, 3);
  const int64_t before = read().beats;
  page.begin_step(12);
  page.begin_micro_batch(4);
  page.set_working_seconds(0.25);
  page.set_local_step(11);
  page.set_persistent_step(8);
  RankStatus status = read();
  EXPECT_EQ(status.pid, ::getpid());
  EXPECT_EQ(status.start_ticks, own_process().start_ticks);
  EXPECT_EQ(status.section, Section::step);
  EXPECT_EQ(status.step, 12);
  EXPECT_EQ(status.micro_batch, 4);
  EXPECT_EQ(status.beats, before + 2);
  EXPECT_EQ(status.working_seconds, 0.25);
  EXPECT_EQ(status.local_step, 11);
  EXPECT_EQ(status.persistent_step, 8);

  page.enter(Section::save);
  status = read();
  EXPECT_EQ(status.section, Section::save);
  EXPECT_EQ(status.step, 12);
  EXPECT_EQ(status.micro_batch, -1);
  EXPECT_EQ(status.beats, before + 3);
}

TEST_F(StatusPageTest, CountsTheLongestTimeInEachSectionThatWasLeft) {
  StatusPage page(path_, 5, 3);
  const auto longest = [&](Section section) { return read().longest[static_cast<size_t>(section)]; };
  page.enter(Section::load);
  EXPECT_GT(longest(Section::boot), 0.0);
  EXPECT_EQ(longest(Section::load), 0.0) << "it goes on";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  page.begin_step(1);
  const double first = longest(Section::load);
  EXPECT_GE(first, 0.02);
  page.enter(Section::load);
  page.begin_step(2);
  EXPECT_EQ(longest(Section::load), first) << "a shorter one";
}

TEST_F(StatusPageTest, CountsWholeSavesAndNotTheirPartInTheLoop) {
  StatusPage page(path_, 5, 3);
  const auto longest = [&] { return read().longest[static_cast<size_t>(Section::save)]; };
  page.enter(Section::save);
  page.begin_step(1);
  EXPECT_EQ(longest(), 0.0);
  page.saw_save(70.0);
  page.saw_save(60.0);
  EXPECT_EQ(longest(), 70.0);
}

TEST_F(StatusPageTest, OutlivesTheRank) {
  { StatusPage(path_, 5, 3).begin_step(7); }
  EXPECT_EQ(read().step, 7);
}

TEST_F(StatusPageTest, ShowsTheCallsOfGroups) {
  StatusPage page(path_, 5, 3);
  StatusPage::Group world = page.add_group("world", std::array{0, 1, 5}, 2);
  StatusPage::Group pipeline = page.add_group("pipeline", std::array{1, 5}, 1);
  world.entered({.operation = "barrier"});
  world.finished();
  world.entered({.operation = "reduce_scatter", .bytes = 4096});
  pipeline.entered({.operation = "exchange", .bytes = 64, .peers = {1, -1}, .is_exchange = true});
  std::vector<RankStatus::Group> groups = read().groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "world");
  EXPECT_EQ(groups[0].size, 3);
  EXPECT_EQ(groups[0].member, 2);
  EXPECT_EQ(groups[0].collectives, (RankStatus::Calls{.entered = 2, .finished = 1}));
  EXPECT_EQ(groups[0].operation, "reduce_scatter");
  EXPECT_EQ(groups[0].bytes, 4096);
  EXPECT_TRUE(groups[0].waits());
  EXPECT_EQ(groups[1].collectives, RankStatus::Calls{});
  EXPECT_EQ(groups[1].exchanges, (RankStatus::Calls{.entered = 1, .finished = 0}));
  EXPECT_EQ(groups[1].operation, "exchange");
  EXPECT_EQ(groups[1].peers, (std::array{1, -1}));
  EXPECT_TRUE(groups[1].waits());
  EXPECT_NE(groups[0].members, groups[1].members);

  pipeline.finished(true);
  groups = read().groups;
  EXPECT_FALSE(groups[1].waits());
  EXPECT_TRUE(groups[0].waits());
}

TEST_F(StatusPageTest, GroupsOfTheSameRanksAreKnownByIt) {
  const auto other_path = directory_ / "rank-1";
  StatusPage::create(other_path, {.run = "run-7", .generation = 3, .rank = 1});
  StatusPage page(path_, 5, 3);
  StatusPage other(other_path, 1, 3);
  page.add_group("pipeline", std::array{1, 5}, 1);
  other.add_group("pipeline", std::array{1, 5}, 0);
  EXPECT_EQ(read().groups.at(0).members, StatusReader(other_path).read().groups.at(0).members);
}

TEST_F(StatusPageTest, LeavesOutGroupsForWhichItHasNoRoom) {
  StatusPage page(path_, 5, 3);
  for (int i = 0; i < StatusPage::kGroups + 2; ++i)
    page.add_group("group-" + std::to_string(i), std::array{5, 6}, 0).entered({.operation = "barrier"});
  const std::vector<RankStatus::Group> groups = read().groups;
  ASSERT_EQ(groups.size(), static_cast<size_t>(StatusPage::kGroups));
  EXPECT_EQ(groups.back().name, "group-9");
}

TEST_F(StatusPageTest, KeepsTheLastWords) {
  StatusPage page(path_, 5, 3);
  page.end(Error(ErrorKind::comm, "rank 2 is gone" + std::string(600, '.'), {.ranks = {2}}));
  const RankStatus status = read();
  ASSERT_TRUE(status.ending);
  EXPECT_EQ(status.section, Section::end);
  EXPECT_FALSE(status.ending->is_done());
  EXPECT_EQ(status.ending->kind, ErrorKind::comm);
  EXPECT_EQ(status.ending->ranks, std::vector<int>{2});
  EXPECT_EQ(status.ending->message, "rank 2 is gone" + std::string(512 - 14, '.'));
}

TEST_F(StatusPageTest, NamesTheRanksOfAnError) {
  StatusPage page(path_, 5, 3);
  std::vector<int> many(20);
  for (int i = 0; i < 20; ++i) many[static_cast<size_t>(i)] = i;
  page.end({.outcome = RankStatus::Outcome::failed, .kind = ErrorKind::comm, .ranks = many, .message = ""});
  many.resize(16);
  EXPECT_EQ(read().ending.value().ranks, many);
}

TEST_F(StatusPageTest, KnowsWhoIsDone) {
  StatusPage page(path_, 5, 3);
  page.end(RankStatus::Outcome::complete);
  EXPECT_TRUE(read().ending.value().is_done());
  page.end(RankStatus::Outcome::stopped_early);
  EXPECT_TRUE(read().ending.value().is_done());
  EXPECT_EQ(read().ending.value().outcome, RankStatus::Outcome::stopped_early);
}

TEST_F(StatusPageTest, BringsTheWishToStop) {
  StatusPage page(path_, 5, 3);
  EXPECT_FALSE(page.stop_is_asked());
  const StatusReader monitor(path_);
  monitor.ask_to_stop();
  EXPECT_TRUE(page.stop_is_asked());
  EXPECT_TRUE(monitor.read().stop_is_asked);
}

TEST_F(StatusPageTest, WorksWhereNobodyWatches) {
  StatusPage page;
  page.begin_step(1);
  StatusPage::Group group = page.add_group("world", std::array{0, 1}, 0);
  group.entered({.operation = "barrier"});
  page.end(RankStatus::Outcome::complete);
  EXPECT_FALSE(page.stop_is_asked());
}

TEST_F(StatusPageTest, IsRefusedByAnyOtherRank) {
  expect_error(ErrorKind::user, {"rank 5 of generation 3", "rank 6 of generation 3"}, [&] { StatusPage(path_, 6, 3); });
  expect_error(ErrorKind::user, {"generation 3", "generation 4"}, [&] { StatusPage(path_, 5, 4); });
  { const StatusPage page(path_, 5, 3); }
  expect_error(ErrorKind::user, {"of process " + std::to_string(::getpid())}, [&] { StatusPage(path_, 5, 3); });
  expect_error(ErrorKind::io, {"no-page"}, [&] { StatusPage(directory_ / "no-page", 5, 3); });
}

TEST_F(StatusPageTest, IsMadeAnewForALaterStart) {
  StatusPage before(path_, 5, 3);
  const StatusReader of_before(path_);
  StatusPage::create(path_, {.run = "run-7", .generation = 4, .rank = 5});
  const StatusPage now(path_, 5, 4);
  before.begin_step(99);
  EXPECT_EQ(read().step, -1);
  EXPECT_EQ(of_before.read().step, 99);
}

TEST_F(StatusPageTest, RefusesOwnersThatItCannotHold) {
  expect_error(ErrorKind::user, {"rank -1"}, [&] { StatusPage::create(path_, {.run = "r", .rank = -1}); });
  expect_error(ErrorKind::user, {"xxx"}, [&] { StatusPage::create(path_, {.run = std::string(65, 'x')}); });
  expect_error(ErrorKind::user, {"my run"}, [&] { StatusPage::create(path_, {.run = "my run"}); });
}

// Bytes of a page that a rank has written, of which a test changes some.
class HostilePage : public StatusPageTest {
 protected:
  HostilePage() {
    StatusPage page(path_, 5, 3);
    page.begin_step(12);
    page.add_group("world", std::array{0, 5}, 1).entered({.operation = "barrier"});
    page.end(Error(ErrorKind::io, "disk full"));
    const std::string content = read_text(path_);
    std::memcpy(static_cast<void*>(&page_), content.data(), sizeof page_);
  }

  RankStatus parse() const {
    std::string content(kStatusPageBytes, '\0');
    std::memcpy(content.data(), &page_, sizeof page_);
    return parse_status_page(std::as_bytes(std::span(content)), "page-9");
  }

  template <class T>
  void expect_refused(T& field, T value, const std::string& what) {
    const T before = std::exchange(field, value);
    expect_error(ErrorKind::data, {"page-9", what}, [&] { parse(); });
    field = before;
  }

  PlainStatusPage page_;
};

TEST_F(HostilePage, IsRefusedByName) {
  EXPECT_EQ(parse(), read());
  expect_refused(page_.magic, uint64_t{1}, "no status page");
  expect_refused(page_.version, uint32_t{1}, "version 1");
  expect_refused(page_.rank, -1, "the rank is -1");
  expect_refused(page_.generation, int64_t{-1}, "generation");
  expect_refused(page_.beats, int64_t{-1}, "beats");
  expect_refused(page_.run[0], uint64_t{0x0a}, "run");
  expect_refused(page_.progress.pid, -4, "process");
  expect_refused(page_.progress.section, uint32_t{kSections}, "section is 9");
  expect_refused(page_.progress.section_began, std::numeric_limits<double>::quiet_NaN(), "begin of the section");
  expect_refused(page_.progress.longest[2], std::numeric_limits<double>::infinity(), "longest time in a section");
  expect_refused(page_.progress.step, int64_t{-2}, "step is -2");
  expect_refused(page_.progress.micro_batch, int64_t{-2}, "micro batch");
  expect_refused(page_.progress.working_seconds, -1.0, "working time");
  expect_refused(page_.progress.local_step, int64_t{-2}, "local step");
  expect_refused(page_.progress.persistent_step, int64_t{-2}, "persistent step");
  expect_refused(page_.groups[0].size, -2, "size of a group");
  expect_refused(page_.groups[0].member, 2, "member of a group");
  expect_refused(page_.groups[0].name[0], uint64_t{0x80}, "name of a group");
  expect_refused(page_.groups[0].collectives.entered, int64_t{-1}, "number of calls");
  expect_refused(page_.groups[0].exchanges.finished, int64_t{-1}, "finished calls");
  expect_refused(page_.groups[0].exchanges.finished, int64_t{1}, "number of calls is 0");
  expect_refused(page_.groups[0].operation[0], uint64_t{0x20}, "operation of a call");
  expect_refused(page_.groups[0].bytes, int64_t{-1}, "size of a call");
  expect_refused(page_.groups[0].peers[1], -2, "peer");
  expect_refused(page_.ending.outcome, uint32_t{4}, "outcome is 4");
  expect_refused(page_.ending.kind, uint32_t{77}, "kind of the error is 77");
  expect_refused(page_.ending.ranks_count, uint32_t{17}, "number of ranks");
  expect_refused(page_.progress.sequence, uint64_t{7}, "being written");
}

TEST_F(HostilePage, TextsWithoutAnEndAreBounded) {
  page_.ending.message.fill(0x0101011b41414141);
  page_.run.fill(0x4242424242424242);
  page_.groups[0].name.fill(0x4343434343434343);
  const RankStatus status = parse();
  EXPECT_EQ(status.run, std::string(64, 'B'));
  EXPECT_EQ(status.groups.at(0).name, std::string(24, 'C'));
  EXPECT_EQ(status.ending.value().message.size(), 512u);
  EXPECT_EQ(status.ending.value().message.substr(0, 8), "AAAA????");
}

TEST_F(HostilePage, FilesOfAnotherSizeAreRefused) {
  std::filesystem::resize_file(path_, 100);
  expect_error(ErrorKind::data, {"rank-5", "100 bytes"}, [&] { read(); });
  expect_error(ErrorKind::data, {"page-9", "0 bytes"}, [] { parse_status_page({}, "page-9"); });
}

TEST_F(HostilePage, AWriterThatStoppedInTheMiddleIsRefused) {
  page_.progress.sequence = 7;
  std::string content(kStatusPageBytes, '\0');
  std::memcpy(content.data(), &page_, sizeof page_);
  replace_file(path_, content);
  expect_error(ErrorKind::data, {"rank-5", "being written"}, [&] { read(); });
}

// A reader never sees half of what belongs together.
TEST_F(StatusPageTest, IsReadWholeWhileItIsWritten) {
  StatusPage page(path_, 5, 3);
  StatusPage::Group group = page.add_group("world", std::array{0, 5}, 1);
  std::atomic<bool> stopping{false};
  std::thread writer([&] {
    for (int64_t i = 0; !stopping; ++i) {
      group.entered({.operation = i % 2 == 0 ? "all_reduce" : "barrier", .bytes = i});
      group.finished();
      for (int pause = 0; pause < 10; ++pause) page.beat();
    }
  });
  const StatusReader reader(path_);
  for (int reads = 0; reads < 20000; ++reads) {
    try {
      const RankStatus status = reader.read();
      const RankStatus::Group& seen = status.groups.at(0);
      if (seen.operation.empty()) continue;
      EXPECT_EQ(seen.operation, seen.bytes % 2 == 0 ? "all_reduce" : "barrier");
      EXPECT_EQ(seen.collectives.entered, seen.bytes + 1);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("being written"), std::string::npos);
    }
  }
  stopping = true;
  writer.join();
}

}  // namespace
}  // namespace megalith
