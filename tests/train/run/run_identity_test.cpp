#include "train/run/run_identity.h"

#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/example_ranks.h"
#include "checkpoint/nodes/part_store.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::train {
namespace {

using ::megalith::testing::TempDir;

class RunIdentityTest : public ::testing::Test {
 protected:
  void keep_on_node(const std::string& run, const std::string& start, int64_t step) const {
    const test::ExampleRank example({.rank = 0, .ranks = 1}, step);
    checkpoint::RunState state = example.state();
    state.run_id = run;
    state.extra["start"] = start;
    checkpoint::PartStore(tiers_.local).save(state, example.place(), example.content(), 1);
  }

  RunIdentity count() const { return count_start(file_, true, tiers_).identity; }

  TempDir directory_;
  std::filesystem::path file_ = directory_ / ".megalith.starts";
  Tiers tiers_{.persistent = {}, .local = directory_ / "node", .memory = {}};
};

TEST_F(RunIdentityTest, CountsStarts) {
  const RunIdentity first = count_start(file_, false, tiers_).identity;
  EXPECT_EQ(first.generation, 0);
  EXPECT_EQ(RunIdentity::from_text(first.to_text()), first);
  for (const int64_t starts : {1, 2}) {
    const CountedStart next = count_start(file_, true, tiers_);
    EXPECT_EQ(next.identity.id, first.id);
    EXPECT_EQ(next.identity.generation, starts);
    EXPECT_TRUE(next.note.empty());
  }
  EXPECT_NE(count_start(file_, false, tiers_).identity.id, first.id) << "a new run";
}

TEST_F(RunIdentityTest, IsFoundAgainInWhatTheRunSaved) {
  keep_on_node("0123456789abcdef", "3", 10);
  keep_on_node("0123456789abcdef", "5", 20);
  for (const char* nonsense : {"", "banana", "0123456789abcdef", "0123456789abcdef -7", "0123456789abcdef 1 more",
                               "0123456789abcdef 99999999999999999999", "\xff\xfe 1", "../../x 1"}) {
    std::ofstream(file_) << nonsense;
    const CountedStart start = count_start(file_, true, tiers_);
    EXPECT_EQ(start.identity, (RunIdentity{.id = "0123456789abcdef", .generation = 5, .resumes = true})) << nonsense;
    EXPECT_NE(start.note.find(file_.string()), std::string::npos) << start.note;
    EXPECT_EQ(read_text(file_), "0123456789abcdef 6\n");
  }
}

TEST_F(RunIdentityTest, IsAGuessWhereNothingIsLeftAndAQuestionWhereTwoAre) {
  EXPECT_TRUE(count().is_guess);
  EXPECT_FALSE(std::filesystem::exists(file_)) << "it would be believed the next time";
  keep_on_node("0123456789abcdef", "3", 10);
  keep_on_node("fedcba9876543210", "1", 20);
  const std::string message = error_of(ErrorKind::user, [&] { count(); });
  EXPECT_NE(message.find("'0123456789abcdef 3' or 'fedcba9876543210 1'"), std::string::npos) << message;
}

}  // namespace
}  // namespace megalith::train
