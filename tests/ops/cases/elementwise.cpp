#include "ops/elementwise.h"

#include "core/rng.h"
#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

namespace {

struct Case {
  int64_t rows, cols, gap;
};
const std::vector<Case> kSmall = {{1, 1, 0},     {1, 9, 0},     {65, 130, 0},   {33, 129, 7},
                                  {1, 40000, 0}, {300, 257, 1}, {257, 2048, 0}, {64, 1000, 8}};
const std::vector<Case> kLarge = {{2048, 768, 0}, {2048, 3072, 0}};

std::string describe(const Case& c) {
  return fmt::format("({}, {}) gap {}", c.rows, c.cols, c.gap);
}

OpCase fill_case(const Case& c, double value) {
  return {.operation = "fill",
          .shape = fmt::format("{} with {}", describe(c), value),
          .run =
              [c, value](Stream& stream, DType dtype, const Named&) {
                const Buffer x(dtype, c.rows, c.cols, c.gap);
                fill(stream, {.x = x.tensor(), .value = value});
                return Named{{"x", x.values()}};
              },
          .inputs = [] { return Named{}; },
          .expected =
              [c, value](const Named&) {
                return Named{{"x", Values(static_cast<size_t>(c.rows * c.cols), value)}};
              }};
}

OpCase cast_case(const Case& c) {
  return {.operation = "cast",
          .shape = describe(c),
          .run =
              [c](Stream& stream, DType dtype, const Named& in) {
                const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
                const Buffer y(DType::f32, c.rows, c.cols, c.gap);
                cast(stream, {.x = x.tensor(), .y = y.tensor()});
                return Named{{"x", y.values()}};
              },
          .inputs =
              [c] {
                return Named{{"x", random_values(c.rows * c.cols, 1)}};
              },
          .expected = [](const Named& in) { return in; }};
}

enum class Where { separate, over_a, over_b };

OpCase add_case(const Case& c, Where where) {
  constexpr const char* kNames[] = {"", " over a", " over b"};
  return {.operation = "add",
          .shape = describe(c) + kNames[static_cast<int>(where)],
          .run =
              [c, where](Stream& stream, DType dtype, const Named& in) {
                const Buffer a(dtype, c.rows, c.cols, c.gap, in.at("a"));
                const Buffer b(dtype, c.rows, c.cols, c.gap, in.at("b"));
                const Buffer y = where == Where::over_a   ? a
                                 : where == Where::over_b ? b
                                                          : Buffer(dtype, c.rows, c.cols, c.gap);
                add(stream, {.a = a.tensor(), .b = b.tensor(), .y = y.tensor()});
                return Named{{"y", y.values()}};
              },
          .inputs =
              [c] {
                return Named{{"a", random_values(c.rows * c.cols, 1)}, {"b", random_values(c.rows * c.cols, 2)}};
              },
          .expected =
              [](const Named& in) {
                Values y = in.at("a");
                for (size_t i = 0; i < y.size(); ++i) y[i] += in.at("b")[i];
                return Named{{"y", y}};
              }};
}

OpCase bias_gradient_case(const Case& c) {
  return {.operation = "bias_gradient",
          .shape = describe(c),
          .run =
              [c](Stream& stream, DType dtype, const Named& in) {
                const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
                const Buffer dbias = vector_of(main_dtype(dtype), in.at("dbias"));
                const Buffer scratch(main_dtype(dtype), 1, column_sum_scratch(c.rows, c.cols));
                bias_gradient(stream, {.dy = dy.tensor(), .dbias = dbias.vector(), .scratch = scratch.vector()});
                return Named{{"dbias", dbias.values()}};
              },
          .inputs =
              [c] {
                return Named{{"dy", random_values(c.rows * c.cols, 1)}, {"dbias", random_values(c.cols, 2)}};
              },
          .expected =
              [c](const Named& in) {
                Values dbias = in.at("dbias");
                for (size_t i = 0; i < in.at("dy").size(); ++i)
                  dbias[i % static_cast<size_t>(c.cols)] += in.at("dy")[i];
                return Named{{"dbias", dbias}};
              }};
}

OpCase normal_init_case(const Case& c, int64_t row_offset, int64_t col_offset) {
  constexpr uint64_t kKey = 42;
  constexpr double kMean = 0.5, kStd = 0.02;
  const int64_t global_cols = col_offset + c.cols;
  return {.operation = "normal_init",
          .shape = fmt::format("{} from ({}, {}) on", describe(c), row_offset, col_offset),
          .run =
              [=](Stream& stream, DType dtype, const Named&) {
                const Buffer x(dtype, c.rows, c.cols, c.gap);
                normal_init(stream, {.x = x.tensor(),
                                     .key = kKey,
                                     .mean = kMean,
                                     .std = kStd,
                                     .row_offset = row_offset,
                                     .col_offset = col_offset,
                                     .global_cols = global_cols});
                return Named{{"x", x.values()}};
              },
          .inputs = [] { return Named{}; },
          .expected =
              [=](const Named&) {
                Values x;
                for (int64_t r = 0; r < c.rows; ++r) {
                  for (int64_t i = 0; i < c.cols; ++i) {
                    const int64_t element = (row_offset + r) * global_cols + col_offset + i;
                    x.push_back(kMean + kStd * normal_at(kKey, static_cast<uint64_t>(element)));
                  }
                }
                return Named{{"x", x}};
              }};
}

}  // namespace

OpCases elementwise_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    cases.push_back(fill_case(c, 1.5));
    cases.push_back(cast_case(c));
    cases.push_back(add_case(c, Where::over_b));
    cases.push_back(bias_gradient_case(c));
    cases.push_back(normal_init_case(c, 0, 0));
    if (size == Size::large) continue;
    cases.push_back(fill_case(c, 0.0));
    cases.push_back(add_case(c, Where::separate));
    cases.push_back(add_case(c, Where::over_a));
    cases.push_back(normal_init_case(c, 3, 4));
  }
  return cases;
}

}  // namespace megalith::ops::testing
