#include <gtest/gtest.h>

#include "comm/world.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

TEST(NoGloo, SaysWhatTheBuildLacks) {
  expect_parts(error_of(ErrorKind::user, [] { join_gloo({}); }), {"Gloo", "libgloo-dev"});
}

}  // namespace
}  // namespace megalith::comm
