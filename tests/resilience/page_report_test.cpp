#include "resilience/monitor/page_report.h"

#include <gtest/gtest.h>

namespace megalith::resilience {
namespace {

TEST(PageReport, SaysWhatThePageDoes) {
  RankStatus status{
      .section = megalith::Section::save, .section_began = 10.0, .step = 7, .micro_batch = 2, .beats = 99};
  status.working_seconds = 0.5;
  status.longest = {0.5, 1.5};
  status.local_step = 6;
  status.persistent_step = 4;
  const PageReport page = page_report(status, 12.5);
  EXPECT_EQ(page.section, Section::save);
  EXPECT_EQ(page.section_seconds, 2.5);
  EXPECT_EQ(page.longest, status.longest);
  EXPECT_EQ(page.step, 7);
  EXPECT_EQ(page.micro_batch, 2);
  EXPECT_EQ(page.beats, 99);
  EXPECT_EQ(page.working_seconds, 0.5);
  EXPECT_EQ(page.local_step, 6);
  EXPECT_EQ(page.persistent_step, 4);
  EXPECT_EQ(page.ending, Ending{});
  EXPECT_TRUE(page.calls.empty());
}

TEST(PageReport, HasTheNamesOfEverySection) {
  for (int section = 0; section < kSections; ++section)
    EXPECT_STREQ(name_of(static_cast<Section>(section)), megalith::name_of(static_cast<megalith::Section>(section)));
}

TEST(PageReport, CountsCollectivesAndExchangesApart) {
  RankStatus status;
  RankStatus::Group group{.name = "pp", .members = 0xabc, .size = 2};
  group.collectives = {.entered = 5, .finished = 5};
  group.exchanges = {.entered = 3, .finished = 2};
  group.operation = "exchange";
  group.bytes = 64;
  group.peers = {4, -1};
  status.groups = {group};
  const std::vector<GroupCalls> calls = page_report(status, 0.0).calls;
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_FALSE(calls[0].exchanges);
  EXPECT_FALSE(calls[0].is_inside());
  EXPECT_TRUE(calls[0].peers.empty());
  EXPECT_TRUE(calls[1].exchanges);
  EXPECT_TRUE(calls[1].is_inside());
  EXPECT_EQ(calls[1].peers, std::vector<int64_t>{4});
  EXPECT_NE(calls[0].group, calls[1].group);

  status.groups.front().members = 0xabd;
  EXPECT_NE(page_report(status, 0.0).calls.front().group, calls[0].group);
}

TEST(PageReport, TellsEndingsApart) {
  const auto kind_of = [](const RankStatus::Ending& ending) {
    RankStatus status;
    status.ending = ending;
    return page_report(status, 0.0).ending.kind;
  };
  EXPECT_EQ(kind_of({.outcome = RankStatus::Outcome::complete}), EndingKind::done);
  EXPECT_EQ(kind_of({.outcome = RankStatus::Outcome::stopped_early}), EndingKind::stopped);
  for (const auto& [error, kind] : {std::pair(ErrorKind::user, EndingKind::user),
                                    {ErrorKind::io, EndingKind::io},
                                    {ErrorKind::data, EndingKind::data},
                                    {ErrorKind::device, EndingKind::device},
                                    {ErrorKind::comm, EndingKind::comm},
                                    {ErrorKind::non_finite, EndingKind::non_finite},
                                    {ErrorKind::internal, EndingKind::internal}})
    EXPECT_EQ(kind_of({.outcome = RankStatus::Outcome::failed, .kind = error}), kind);
}

}  // namespace
}  // namespace megalith::resilience
