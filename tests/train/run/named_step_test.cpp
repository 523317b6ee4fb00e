#include "train/run/named_step.h"

#include <gtest/gtest.h>

namespace megalith::train {
namespace {

using checkpoint::Lineage;
using config::GenerationStart;

TEST(NamedStep, IsFoundAgainInTheMessage) {
  const std::string message = why_not_from(Lineage({{4, 30}}), "part 3: it is gone");
  EXPECT_EQ(message, "generation 4 cannot go on from step 30: part 3: it is gone");
  EXPECT_EQ(step_not_loaded(message), 30);
  EXPECT_EQ(step_not_loaded(why_not_from(Lineage({{1, GenerationStart::kAnew}}), "x")), GenerationStart::kAnew);
}

TEST(NamedStep, OtherMessagesHaveNone) {
  for (const char* message :
       {"", "generation", "generation 4", "generation 4 has taken over", "generation x cannot go on from step 3: y",
        "generation 4 cannot go on from step x: y", "generation 4 cannot go on from step ", "step 3 cannot be loaded"})
    EXPECT_EQ(step_not_loaded(message), std::nullopt) << message;
}

}  // namespace
}  // namespace megalith::train
