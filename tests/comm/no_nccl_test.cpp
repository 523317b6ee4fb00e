#include <gtest/gtest.h>

#include "comm/expect_error.h"
#include "comm/world.h"

namespace megalith::comm {
namespace {

TEST(NoNccl, SaysWhatTheBuildLacks) {
  expect_parts(error_of(ErrorKind::user, [] { join_nccl({}); }), {"NCCL", "MEGALITH_CUDA"});
}

}  // namespace
}  // namespace megalith::comm
