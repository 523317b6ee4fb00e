#include "ops/cases/row_order.h"

#include <algorithm>

#include "core/rng.h"

namespace megalith::ops::testing {

namespace {

struct Case {
  int64_t rows, limit;
};
// A GPU sorts few rows in another way than many, and keys of few bits in another than of many.
const std::vector<Case> kSmall = {{1, 1},        {7, 3},    {64, 1},        {65, 5000},    {4096, 50},
                                  {8192, 50304}, {8193, 7}, {9000, 128256}, {5000, 600000}};
const std::vector<Case> kLarge = {{2048, 50304}, {32768, 50304}};

Named inputs_of(const Case& c) {
  Values given;
  for (int64_t i = 0; i < c.rows; ++i) {
    given.push_back(static_cast<double>(philox(3, {static_cast<uint32_t>(i), 0, 0, 0})[0] % c.limit));
  }
  return {{"given", given}};
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

}  // namespace

OpCases row_order_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    cases.push_back({.operation = "order_rows",
                     .shape = fmt::format("{} rows, keys below {}", c.rows, c.limit),
                     .run =
                         [c](Stream& stream, DType, const Named& in) {
                           return OrderedRows(stream, vector_of(DType::i32, in.at("given")), c.rows, c.limit).values();
                         },
                     .inputs = [c] { return inputs_of(c); },
                     .expected = naive_order,
                     .is_exact = true});
  }
  return cases;
}

}  // namespace megalith::ops::testing
