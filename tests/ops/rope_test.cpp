#include "ops/rope.h"

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(Rope, RefusesPositionsBeyondItsTable) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 4, 8), table(DType::f32, 3, 4);
  expect_refused([&] {
    rope(stream,
         {.x = x.tensor(), .head_dim = 8, .length = 4, .angles_cos = table.tensor(), .angles_sin = table.tensor()});
  });
  expect_refused([&] {
    rope(stream,
         {.x = x.tensor(), .head_dim = 3, .length = 2, .angles_cos = table.tensor(), .angles_sin = table.tensor()});
  });
}

}  // namespace
}  // namespace megalith::ops::testing
