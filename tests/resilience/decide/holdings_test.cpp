#include "resilience/decide/holdings.h"

#include <gtest/gtest.h>

namespace megalith::resilience {
namespace {

Holding holding(int64_t step, int64_t generation, std::vector<int64_t> held, int64_t parts = 4) {
  return {.step = step, .generation = generation, .parts = parts, .held = std::move(held)};
}

const IsValid kAll = [](const Holding&) { return true; };

TEST(Holdings, TextAndBack) {
  std::vector<Holding> holdings = {holding(120, 3, {0, 1, 2, 7}, 8), holding(0, 1, {5}, 6)};
  holdings[1].tier = Tier::persistent;
  EXPECT_EQ(to_text(holdings), "memory 120 g3 0-2,7/8; persistent 0 g1 5/6");
  EXPECT_EQ(parse_holdings(to_text(holdings)), holdings);
  EXPECT_EQ(parse_holdings(""), std::vector<Holding>{});
}

TEST(Holdings, OtherTextsAreRefused) {
  for (const char* text :
       {"x", "memory", "memory 1 g1 /4", "memory 1 g1 0-9/4", "memory 1 g1 3-1/4", "memory 1 g1 1,1/4",
        "memory -1 g1 0/4", "memory 1 g1 0/4;", "memory 1 g1 0-99999999999/4", "disk 1 g1 0/4"}) {
    EXPECT_FALSE(parse_holdings(text)) << text;
  }
}

TEST(Holdings, AllNodesTogetherCoverAStep) {
  const std::vector<std::vector<Holding>> nodes = {{holding(8, 1, {0, 1, 2}), holding(9, 1, {0, 1})},
                                                   {holding(8, 1, {2, 3}), holding(9, 1, {2})}};
  EXPECT_EQ(newest_covered_step(nodes, kAll), 8) << "part 3 of step 9 is nowhere";
  EXPECT_EQ(newest_covered_step(nodes, [](const Holding& h) { return h.step < 8; }), -1);
}

TEST(Holdings, PartsOfTwoGenerationsDoNotMix) {
  const std::vector<std::vector<Holding>> nodes = {{holding(8, 1, {0, 1})},
                                                   {holding(8, 2, {2, 3}), holding(5, 1, {0, 1, 2, 3})}};
  EXPECT_EQ(newest_covered_step(nodes, kAll), 5);
}

}  // namespace
}  // namespace megalith::resilience
