#include "checkpoint/lineage.h"

#include <gtest/gtest.h>

namespace megalith::checkpoint {
namespace {

using config::GenerationStart;
using enum Lineage::Standing;

RunState saved_by(const std::string& generation, int64_t step) {
  RunState state{.run_id = "run-1", .step = step};
  state.extra[kGenerationKey] = generation;
  return state;
}

TEST(Lineage, WithoutASupervisorEverythingBelongs) {
  EXPECT_FALSE(Lineage().is_known());
  EXPECT_EQ(Lineage().standing_of(7, 1000), belongs);
  EXPECT_EQ(Lineage().why_not(saved_by("7", 1000)), "");
}

TEST(Lineage, GivesUpWhatOlderGenerationsSavedBeyondAStep) {
  const Lineage lineage({{1, GenerationStart::kAnew}, {2, 20}, {4, 30}});
  EXPECT_EQ(lineage.generation(), 4);
  EXPECT_EQ(lineage.from_step(), 30);
  EXPECT_EQ(lineage.standing_of(1, 20), belongs);
  EXPECT_EQ(lineage.standing_of(2, 30), belongs);
  EXPECT_EQ(lineage.standing_of(4, 31), belongs) << "its own";
  EXPECT_EQ(lineage.standing_of(2, 31), given_up);
  EXPECT_EQ(lineage.standing_of(1, 25), given_up) << "though generation 4 went on from a later step";
  EXPECT_EQ(lineage.standing_of(0, 10), given_up) << "a run without a supervisor, before: generation 1 began anew";
  EXPECT_EQ(lineage.standing_of(5, 10), newer);
  EXPECT_EQ(lineage.before_last().standing_of(2, 31), belongs);
}

TEST(Lineage, SaysWhy) {
  const Lineage lineage({{1, GenerationStart::kAnew}, {2, 20}});
  EXPECT_EQ(lineage.why_not(saved_by("1", 25)), "generation 1 saved it, and generation 2 went on from step 20");
  EXPECT_EQ(lineage.why_not(saved_by("0", 5)), "generation 0 saved it, and generation 1 began anew");
  EXPECT_EQ(lineage.why_not(saved_by("9", 5)), "generation 9 saved it, and this is generation 2");
}

TEST(Lineage, AGenerationThatIsNoNumberIsTheOldest) {
  for (const char* text : {"", "x", "-1", "3 ", "99999999999999999999"}) EXPECT_EQ(generation_of(saved_by(text, 5)), 0);
  EXPECT_EQ(generation_of({}), 0);
  EXPECT_EQ(generation_of(saved_by("12", 5)), 12);
}

}  // namespace
}  // namespace megalith::checkpoint
