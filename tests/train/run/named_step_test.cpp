#include "train/run/named_step.h"

#include <gtest/gtest.h>

namespace megalith::train {
namespace {

using checkpoint::Lineage;
using config::GenerationStart;

TEST(NamedStep, IsInTheMessage) {
  EXPECT_EQ(why_not_from(Lineage({{4, 30}}), "part 3: it is gone"),
            "generation 4 cannot go on from step 30: part 3: it is gone");
  EXPECT_EQ(why_not_from(Lineage({{1, GenerationStart::kAnew}}), "x"), "generation 1 cannot begin anew: x");
}

}  // namespace
}  // namespace megalith::train
