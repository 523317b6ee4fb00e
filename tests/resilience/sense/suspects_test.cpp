#include "resilience/sense/suspects.h"

#include <gtest/gtest.h>

#include <deque>

namespace megalith::resilience {
namespace {

// Ranks of a run that hangs: all overdue unless a test says otherwise.
class Hang {
 public:
  RankView& rank(int64_t number) {
    pages_.emplace_back();
    views_.push_back({.rank = number, .page = &pages_.back(), .is_overdue = true});
    return views_.back();
  }
  RankView& waits(int64_t number, const std::string& group, int64_t entered) {
    RankView& view = rank(number);
    calls(group, entered, entered - 1);
    return view;
  }
  // Of the last rank.
  void calls(const std::string& group, int64_t entered, int64_t finished) {
    pages_.back().calls.push_back(
        {.group = group, .operation = "all_reduce", .entered = entered, .finished = finished});
  }
  void exchanges(const std::string& group, int64_t entered, int64_t finished, std::vector<int64_t> peers) {
    pages_.back().calls.push_back({.group = group,
                                   .operation = "exchange",
                                   .entered = entered,
                                   .finished = finished,
                                   .exchanges = true,
                                   .peers = std::move(peers)});
  }
  void process(char state) {
    processes_.push_back({.state = state});
    views_.back().process = &processes_.back();
  }
  std::vector<int64_t> suspects() const {
    const std::vector<RankView> views(views_.begin(), views_.end());
    return find_suspects(views).ranks;
  }

 private:
  std::deque<PageReport> pages_;
  std::deque<ProcessReport> processes_;
  std::deque<RankView> views_;
};

using Ranks = std::vector<int64_t>;

TEST(Suspects, AStoppedProcessEvenInsideACall) {
  Hang hang;
  hang.waits(0, "dp", 7);
  hang.process('S');
  hang.waits(1, "dp", 7);
  hang.process('T');
  EXPECT_EQ(hang.suspects(), Ranks{1});
}

TEST(Suspects, ADiskWaitOnlyPastItsDeadline) {
  Hang hang;
  hang.waits(0, "dp", 7).is_overdue = false;
  hang.process('D');
  EXPECT_EQ(hang.suspects(), Ranks{});
  hang.waits(1, "dp", 7);
  hang.process('D');
  EXPECT_EQ(hang.suspects(), Ranks{1});
}

TEST(Suspects, WhoIsNotInACallAndDoesNotBeat) {
  Hang hang;
  hang.waits(0, "dp", 7);
  hang.rank(1);
  hang.calls("dp", 6, 6);
  EXPECT_EQ(hang.suspects(), Ranks{1});
}

TEST(Suspects, WhoIsBehindInAGroup) {
  Hang hang;
  hang.waits(0, "dp", 7);
  hang.waits(2, "dp", 7);
  hang.rank(1).is_overdue = false;  // computes, and is late
  hang.calls("dp", 6, 6);
  EXPECT_EQ(hang.suspects(), Ranks{1});
}

TEST(Suspects, WhomTheWaitingWaitForInTheEnd) {
  Hang hang;
  hang.waits(0, "dp", 7);   // waits for 1,
  hang.waits(1, "tp", 20);  // which waits for 3 in another group,
  hang.calls("dp", 6, 6);
  hang.waits(3, "tp2", 5);  // which is inside a call that all its members are in
  hang.calls("tp", 19, 19);
  hang.waits(4, "tp2", 5);
  EXPECT_EQ(hang.suspects(), Ranks{3});
}

TEST(Suspects, WhoDoesNotAnswerAnExchange) {
  Hang hang;
  hang.rank(0);
  hang.exchanges("pp", 9, 8, {1});
  hang.rank(1);
  hang.exchanges("pp", 30, 29, {2});
  hang.rank(2).is_overdue = false;
  hang.exchanges("pp", 5, 5, {});
  EXPECT_EQ(hang.suspects(), Ranks{2});
}

TEST(Suspects, NobodyWhereAllAreInTheSameCall) {
  Hang hang;
  hang.waits(0, "dp", 7);
  hang.waits(1, "dp", 7);
  EXPECT_EQ(hang.suspects(), Ranks{});
}

}  // namespace
}  // namespace megalith::resilience
