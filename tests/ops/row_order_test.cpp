#include "ops/row_order.h"

#include <algorithm>

#include "core/rng.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

struct Case {
  int64_t rows, limit;
};

Runner run_order(const Case& c) {
  return [c](Stream& stream, DType, const Named& in) {
    const Buffer given = vector_of(DType::i32, in.at("given"));
    const Buffer keys(DType::i32, 1, c.rows), rows(DType::i32, 1, c.rows);
    const Buffer scratch(DType::i32, 1, row_order_scratch(stream.device(), c.rows));
    order_rows(stream, {.given = given.vector(),
                        .limit = c.limit,
                        .order = {.keys = keys.vector(), .rows = rows.vector()},
                        .scratch = scratch.vector()});
    return Named{{"keys", keys.values()}, {"rows", rows.values()}};
  };
}

// Row after row goes behind all with keys that are no larger.
Named naive_order(const Named& in) {
  Values keys, rows;
  for (size_t row = 0; row < in.at("given").size(); ++row) {
    const double key = in.at("given")[row];
    const auto place = std::upper_bound(keys.begin(), keys.end(), key) - keys.begin();
    keys.insert(keys.begin() + place, key);
    rows.insert(rows.begin() + place, static_cast<double>(row));
  }
  return {{"keys", keys}, {"rows", rows}};
}

// A GPU sorts few rows in another way than many, and keys of few bits in another than of many.
TEST(RowOrder, IsStable) {
  for (const Case& c : std::vector<Case>{
           {1, 1}, {7, 3}, {64, 1}, {65, 5000}, {4096, 50}, {8192, 50304}, {8193, 7}, {9000, 128256}, {5000, 600000}}) {
    SCOPED_TRACE(fmt::format("{} rows, keys below {}", c.rows, c.limit));
    Values given;
    for (int64_t i = 0; i < c.rows; ++i) {
      given.push_back(static_cast<double>(philox(3, {static_cast<uint32_t>(i), 0, 0, 0})[0] % c.limit));
    }
    const Named in{{"given", given}};
    const Named expected = naive_order(in);
    EXPECT_EQ(run_on(1, run_order(c), DType::f32, in), expected);
    if (!has_gpu()) continue;
    EXPECT_EQ(run_on_gpu(run_order(c), DType::f32, in), expected);
  }
}

TEST(RowOrder, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer keys(DType::i32, 1, 3), rows(DType::i32, 1, 3), few(DType::i32, 1, 2);
  const Buffer good = vector_of(DType::i32, {0, 4, 1});
  const Buffer beyond = vector_of(DType::i32, {0, 5, 1}), negative = vector_of(DType::i32, {0, -1, 1});
  const auto order = [&](const Buffer& given, const Buffer& into) {
    order_rows(stream, {.given = given.vector(), .limit = 5, .order = {.keys = keys.vector(), .rows = into.vector()}});
  };
  order(good, rows);
  expect_refused([&] { order(beyond, rows); });
  expect_refused([&] { order(negative, rows); });
  expect_refused([&] { order(good, few); });
}

}  // namespace
}  // namespace megalith::ops::testing
