#include "core/process/failpoint.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace megalith {
namespace {

class Failpoint : public ::testing::Test {
 protected:
  void TearDown() override { disarm_failpoints(); }
};

TEST_F(Failpoint, ActsAtTheCountItWasAskedFor) {
  arm_failpoint("place=io@2");
  EXPECT_NO_THROW(pass_failpoint("place"));
  EXPECT_THROW(pass_failpoint("place"), Error);
  EXPECT_NO_THROW(pass_failpoint("place"));
  EXPECT_NO_THROW(pass_failpoint("elsewhere"));
}

TEST_F(Failpoint, RefusesBadText) {
  for (const char* text : {"place", "=io", "place=explode", "place=io@", "place=io@0", "place=io@2x"}) {
    EXPECT_THROW(arm_failpoint(text), Error) << text;
  }
}

}  // namespace
}  // namespace megalith
