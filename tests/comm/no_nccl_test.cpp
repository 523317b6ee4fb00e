#include <gtest/gtest.h>

#include "comm/world.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

TEST(NoNccl, SaysWhatTheBuildLacks) {
  expect_parts(error_of(ErrorKind::user, [] { join_nccl({}); }), {"NCCL", "MEGALITH_CUDA"});
}

}  // namespace
}  // namespace megalith::comm
