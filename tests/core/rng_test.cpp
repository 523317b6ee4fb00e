#include "core/rng.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// The known-answer vectors that the authors of Philox publish with their library (Random123).
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox(0, {0, 0, 0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox(~uint64_t{0}, {ones, ones, ones, ones}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(NormalAt, HasTheMomentsOfANormal) {
  const int count = 200000;
  double sum = 0.0;
  double squares = 0.0;
  double fourth = 0.0;
  for (int i = 0; i < count; ++i) {
    const double x = normal_at(named_key(1234, "layers.0.mlp.up.weight"), static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / count, 0.0, 0.01);
  EXPECT_NEAR(squares / count, 1.0, 0.02);
  EXPECT_NEAR(fourth / count, 3.0, 0.1);
}

TEST(Keys, DifferByEveryPart) {
  const DropoutKey key{.seed = 1, .site = 2, .step = 3};
  EXPECT_NE(key.of_sample(4), key.of_sample(5));
  EXPECT_NE(key.of_sample(4), (DropoutKey{.seed = 1, .site = 2, .step = 4}.of_sample(4)));
  EXPECT_NE(key.of_sample(4), (DropoutKey{.seed = 1, .site = 3, .step = 3}.of_sample(4)));
  EXPECT_NE(named_key(1, "a"), named_key(1, "b"));
  EXPECT_NE(named_key(1, "a"), named_key(2, "a"));
}

}  // namespace
}  // namespace megalith
