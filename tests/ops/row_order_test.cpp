#include "ops/vocabulary/row_order.h"

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(RowOrder, RefusesKeysBeyondTheLimit) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer keys(DType::i32, 1, 3), rows(DType::i32, 1, 3);
  const Buffer good = vector_of(DType::i32, {0, 4, 1});
  const Buffer beyond = vector_of(DType::i32, {0, 5, 1}), negative = vector_of(DType::i32, {0, -1, 1});
  const auto order = [&](const Buffer& given) {
    order_rows(stream, {.given = given.vector(), .limit = 5, .order = {.keys = keys.vector(), .rows = rows.vector()}});
  };
  order(good);
  expect_refused([&] { order(beyond); });
  expect_refused([&] { order(negative); });
}

}  // namespace
}  // namespace megalith::ops::testing
