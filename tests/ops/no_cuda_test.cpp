#include "expect_error.h"
#include "ops/activation.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(NoCuda, SaysThatThisBuildHasNone) {
  if (has_gpu()) GTEST_SKIP() << "this build has CUDA";
  ThreadPool pool(1);
  Stream stream(pool);
  expect_error(ErrorKind::user, {"no CUDA"}, [&] { cuda::gelu_forward(stream, {}); });
}

}  // namespace
}  // namespace megalith::ops::testing
