#include "ops/elementwise.h"

#include <cmath>

#include "core/rng.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

struct Case {
  int64_t rows, cols, gap;
};
const std::vector<Case> kCases = {{1, 1, 0},     {1, 9, 0},     {65, 130, 0},   {33, 129, 7},
                                  {1, 40000, 0}, {300, 257, 1}, {257, 2048, 0}, {64, 1000, 8}};

std::string describe(const Case& c) {
  return fmt::format("({}, {}) gap {}", c.rows, c.cols, c.gap);
}

TEST(Fill, FillsEveryElementAndNothingElse) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    for (const double value : {1.5, 0.0}) {
      const Runner runner = [c, value](Stream& stream, DType dtype, const Named&) {
        const Buffer x(dtype, c.rows, c.cols, c.gap);
        fill(stream, {.x = x.tensor(), .value = value});
        return Named{{"x", x.values()}};
      };
      expect_matches(runner,
                     [c, value](const Named&) {
                       return Named{{"x", Values(static_cast<size_t>(c.rows * c.cols), value)}};
                     },
                     {});
    }
  }
}

TEST(Cast, RoundsBetweenAllTypes) {
  // Eight of them, as a GPU reads at a time: the last but one lies between two bf16 and rounds to even.
  const Values values = {0.0, 1.0, -2.5, 1.00390625, 3.14159265358979, 1e30, 1.01171875, NAN};
  for (const DType from : {DType::f32, DType::bf16, DType::f64}) {
    for (const DType to : {DType::f32, DType::bf16, DType::f64}) {
      const Runner runner = [to](Stream& stream, DType dtype, const Named& in) {
        const Buffer x = vector_of(dtype, in.at("x"));
        const Buffer y(to, 1, x.tensor().elements());
        cast(stream, {.x = x.tensor(), .y = y.tensor()});
        return Named{{"y", y.values()}};
      };
      const Values expected = vector_of(to, vector_of(from, values).values()).values();
      const bool on_gpu = from != DType::f64 && to != DType::f64;
      const Named in{{"x", values}};
      for (const Named& out :
           on_gpu ? run_everywhere(runner, from, in) : std::vector<Named>{run_on(1, runner, from, in)}) {
        for (size_t i = 0; i + 1 < values.size(); ++i) {
          EXPECT_EQ(out.at("y")[i], expected[i]) << name_of(from) << name_of(to);
        }
        EXPECT_TRUE(std::isnan(out.at("y").back()));
      }
    }
  }
}

TEST(Cast, HandlesStridedRowsAndThreads) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    const Runner runner = [c](Stream& stream, DType dtype, const Named& in) {
      const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
      const Buffer y(DType::f32, c.rows, c.cols, c.gap);
      cast(stream, {.x = x.tensor(), .y = y.tensor()});
      return Named{{"x", y.values()}};
    };
    expect_matches(runner, [](const Named& in) { return in; }, {{"x", random_values(c.rows * c.cols, 1)}});
  }
}

TEST(BiasGradient, AddsColumnSums) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    const Runner runner = [c](Stream& stream, DType dtype, const Named& in) {
      const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
      const Buffer dbias = vector_of(main_dtype(dtype), in.at("dbias"));
      const Buffer scratch(main_dtype(dtype), 1, column_sum_scratch(c.rows, c.cols));
      bias_gradient(stream, {.dy = dy.tensor(), .dbias = dbias.vector(), .scratch = scratch.vector()});
      return Named{{"dbias", dbias.values()}};
    };
    const Reference reference = [c](const Named& in) {
      Values dbias = in.at("dbias");
      for (size_t i = 0; i < in.at("dy").size(); ++i) dbias[i % static_cast<size_t>(c.cols)] += in.at("dy")[i];
      return Named{{"dbias", dbias}};
    };
    expect_matches(runner, reference, {{"dy", random_values(c.rows * c.cols, 1)}, {"dbias", random_values(c.cols, 2)}});
  }
}

TEST(NormalInit, EqualsNormalAtWhateverTheCut) {
  struct Cut {
    int64_t rows, cols, gap, row_offset, col_offset, global_cols;
  };
  for (const Cut& c :
       {Cut{1, 1, 0, 0, 0, 1}, Cut{5, 7, 0, 0, 0, 7}, Cut{5, 7, 2, 3, 4, 11}, Cut{3, 2500, 0, 1, 1, 2501}}) {
    const Runner runner = [c](Stream& stream, DType dtype, const Named&) {
      const Buffer x(dtype, c.rows, c.cols, c.gap);
      normal_init(stream, {.x = x.tensor(),
                           .key = 42,
                           .mean = 0.5,
                           .std = 0.02,
                           .row_offset = c.row_offset,
                           .col_offset = c.col_offset,
                           .global_cols = c.global_cols});
      return Named{{"x", x.values()}};
    };
    const Values actual = run_on(2, runner, DType::f64, {}).at("x");
    for (int64_t r = 0; r < c.rows; ++r) {
      for (int64_t i = 0; i < c.cols; ++i) {
        const int64_t element = (c.row_offset + r) * c.global_cols + c.col_offset + i;
        EXPECT_DOUBLE_EQ(actual[static_cast<size_t>(r * c.cols + i)],
                         0.5 + 0.02 * normal_at(42, static_cast<uint64_t>(element)));
      }
    }
    expect_same_on_any_threads(runner, {});
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const Named& out : run_everywhere(runner, dtype, {})) {
        EXPECT_EQ(out.at("x"), run_on(1, runner, dtype, {}).at("x")) << name_of(dtype);
      }
    }
  }
}

TEST(Elementwise, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 4, 8), narrow(DType::f32, 4, 7), integers(DType::i32, 4, 8);
  expect_refused([&] { fill(stream, {.x = integers.tensor()}); });
  expect_refused([&] { cast(stream, {.x = x.tensor(), .y = narrow.tensor()}); });
  expect_refused([&] { cast(stream, {.x = x.tensor(), .y = integers.tensor()}); });
  expect_refused([&] { bias_gradient(stream, {.dy = x.tensor(), .dbias = narrow.tensor(), .scratch = x.vector()}); });
  expect_refused([&] { normal_init(stream, {.x = x.tensor(), .global_cols = 7}); });
}

}  // namespace
}  // namespace megalith::ops::testing
