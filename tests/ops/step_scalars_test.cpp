#include "ops/step_scalars.h"

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(StepScalars, RefuseWhatIsNotThere) {
  ThreadPool pool(1);
  Stream stream(pool);
  StepScalars scalars;
  const double weight = 1.0;
  expect_refused([&] { set_step_scalars(stream, {}); });
  expect_refused([&] { set_number(stream, {}); });
  expect_refused([&] { weigh_step(stream, {.scalars = &scalars}); });
  expect_refused([&] { weigh_step(stream, {.total_weight = &weight}); });
  EXPECT_NO_THROW(weigh_step(stream, {.scalars = &scalars, .total_weight = &weight}));
}

TEST(Sum, IsOneNumber) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x = vector_of(DType::f32, {1.0, 2.0}), two(DType::f64, 1, 2), strided(DType::f32, 2, 2, 1);
  const Buffer total(DType::f64, 1, 1);
  expect_refused([&] { sum(stream, {.x = x.vector(), .total = two.vector()}); });
  expect_refused([&] { sum(stream, {.x = strided.tensor(), .total = total.vector()}); });
}

}  // namespace
}  // namespace megalith::ops::testing
