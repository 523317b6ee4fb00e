#include "ops/activation.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(NoCuda, SaysThatThisBuildHasNone) {
  if (has_gpu()) GTEST_SKIP() << "this build has CUDA";
  ThreadPool pool(1);
  Stream stream(pool);
  try {
    cuda::gelu_forward(stream, {});
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    EXPECT_NE(std::string(error.what()).find("no CUDA"), std::string::npos);
  }
}

}  // namespace
}  // namespace megalith::ops::testing
