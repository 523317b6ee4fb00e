#include "ops/elementwise.h"

#include <cmath>

#include "core/rng.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

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
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const Named& out : run_everywhere(runner, dtype, {})) {
        EXPECT_EQ(out.at("x"), run_on(1, runner, dtype, {}).at("x")) << name_of(dtype);
      }
    }
  }
}

TEST(Elementwise, RefusesColumnsBeyondTheWhole) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 4, 8);
  expect_refused([&] { normal_init(stream, {.x = x.tensor(), .global_cols = 7}); });
  expect_refused([&] { normal_init(stream, {.x = x.tensor(), .row_offset = -1, .global_cols = 8}); });
}

}  // namespace
}  // namespace megalith::ops::testing
