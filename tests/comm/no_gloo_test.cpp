#include <gtest/gtest.h>

#include "comm/expect_error.h"
#include "comm/world.h"

namespace megalith::comm {
namespace {

TEST(NoGloo, SaysWhatTheBuildLacks) {
  expect_parts(error_of(ErrorKind::user, [] { join_gloo({}); }), {"Gloo", "libgloo-dev"});
}

}  // namespace
}  // namespace megalith::comm
