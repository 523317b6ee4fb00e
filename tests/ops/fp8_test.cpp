#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "ops/activation.h"
#include "ops/gemm.h"
#include "ops/norm.h"
#include "ops/op_test.h"
#include "ops/operands/quantize.h"
#include "ops/operands/scales.h"

namespace megalith::ops::testing {
namespace {

constexpr int64_t kRows = 150;  // more than one tile of column sums
constexpr int64_t kCols = 37;

std::vector<float> normals(int64_t count, uint64_t seed, double std = 1.0) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(std * normal_at(seed, i));
  return values;
}

Tensor matrix(std::vector<float>& values, int64_t rows, int64_t cols) {
  return Tensor(values.data(), DType::f32, {rows, cols});
}

// An fp8 operand of its own memory and slot.
struct Fp8 {
  Fp8(DType type, int64_t rows, int64_t cols, float by = 4.0F)
      : memory(static_cast<size_t>(rows * cols)),
        turned(memory.size()),
        scale(by),
        inverse(1.0F / by),
        operand(Tensor(memory.data(), type, {rows, cols}), Tensor(turned.data(), type, {cols, rows}),
                {.scale = &scale, .inverse = &inverse, .amax = &amax}) {}
  Fp8(const Fp8&) = delete;

  template <class F>
  F at(int64_t row, int64_t col) const {
    return operand.rows.row<F>(row)[col];
  }
  float largest_seen() const { return std::bit_cast<float>(amax); }

  std::vector<uint8_t> memory, turned;
  float scale, inverse;
  uint32_t amax = 0;
  Operand operand;
};

// Rows are the cast of `values`, columns are the same bytes transposed, the amax is that of the values.
template <class F>
void expect_cast_of(const Fp8& fp8, const std::vector<float>& values) {
  const int64_t cols = fp8.operand.rows.cols();
  float amax = 0.0F;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / cols;
    const auto col = static_cast<int64_t>(i) % cols;
    const uint8_t wanted = F(values[i] * fp8.scale).bits;
    ASSERT_EQ(fp8.at<F>(row, col).bits, wanted) << row << ", " << col;
    ASSERT_EQ(fp8.operand.columns.row<F>(col)[row].bits, wanted) << row << ", " << col;
    amax = std::max(amax, std::fabs(values[i]));
  }
  EXPECT_EQ(fp8.largest_seen(), amax);
}

class Fp8Ops : public ::testing::TestWithParam<int> {
 protected:
  ThreadPool pool{GetParam()};
  Stream stream{pool};
};

TEST_P(Fp8Ops, QuantizeWritesRowsColumnsAmaxAndSums) {
  std::vector<float> x = normals(kRows * kCols, 1);
  std::vector<float> sums(kCols, 0.5F);
  std::vector<float> scratch(static_cast<size_t>(column_sum_scratch(kRows, kCols)));
  Fp8 y(DType::e4m3, kRows, kCols);
  quantize(stream, {.x = matrix(x, kRows, kCols),
                    .y = y.operand,
                    .dbias = Tensor(sums.data(), DType::f32, {kCols}),
                    .scratch = Tensor(scratch.data(), DType::f32, {std::ssize(scratch)})});
  expect_cast_of<float8_e4m3>(y, x);
  for (int64_t c = 0; c < kCols; ++c) {
    double sum = 0.5;
    for (int64_t r = 0; r < kRows; ++r) sum += x[static_cast<size_t>(r * kCols + c)];
    EXPECT_NEAR(sums[static_cast<size_t>(c)], sum, 1e-4);
  }
}

TEST_P(Fp8Ops, OneSideAloneIsWritten) {
  std::vector<float> x = normals(kRows * kCols, 1);
  Fp8 both(DType::e5m2, kRows, kCols);
  Fp8 part(DType::e5m2, kRows, kCols);
  quantize(stream, {.x = matrix(x, kRows, kCols), .y = both.operand});
  quantize(stream, {.x = matrix(x, kRows, kCols), .y = {part.operand.rows, {}, part.operand.slot}});
  EXPECT_EQ(part.memory, both.memory);
  EXPECT_EQ(std::count(part.turned.begin(), part.turned.end(), 0), std::ssize(part.turned));
  transpose(stream, {.rows = part.operand.rows, .columns = part.operand.columns});
  EXPECT_EQ(part.turned, both.turned);
}

TEST_P(Fp8Ops, MeasuringWritesTheAmaxAlone) {
  std::vector<float> x = normals(kRows * kCols, 1);
  Fp8 y(DType::e4m3, kRows, kCols);
  quantize(stream, {.x = matrix(x, kRows, kCols), .y = {{}, {}, y.operand.slot}});
  EXPECT_GT(y.largest_seen(), 2.0F);
  EXPECT_EQ(std::count(y.memory.begin(), y.memory.end(), 0), std::ssize(y.memory));
}

TEST_P(Fp8Ops, AmaxTellsWhatTheCastHides) {
  std::vector<float> x = normals(kRows * kCols, 1);
  x[70] = -std::numeric_limits<float>::infinity();
  Fp8 y(DType::e4m3, kRows, kCols);
  quantize(stream, {.x = matrix(x, kRows, kCols), .y = y.operand});
  EXPECT_TRUE(std::isinf(y.largest_seen()));
  EXPECT_EQ(static_cast<float>(y.at<float8_e4m3>(70 / kCols, 70 % kCols)), -448.0F);
  x[71] = std::numeric_limits<float>::quiet_NaN();
  quantize(stream, {.x = matrix(x, kRows, kCols), .y = y.operand});
  EXPECT_TRUE(std::isnan(y.largest_seen()));
}

TEST_P(Fp8Ops, NormWritesTheCastOfItsOutput) {
  for (const NormKind kind : {NormKind::layer_norm, NormKind::rms_norm}) {
    std::vector<float> x = normals(kRows * kCols, 1);
    std::vector<float> weight = normals(kCols, 2);
    std::vector<float> plain(x.size());
    std::vector<float> mean(kRows), rstd(kRows);
    NormForward args{.kind = kind,
                     .x = matrix(x, kRows, kCols),
                     .weight = Tensor(weight.data(), DType::f32, {kCols}),
                     .y = matrix(plain, kRows, kCols),
                     .mean = Tensor(mean.data(), DType::f32, {kRows}),
                     .rstd = Tensor(rstd.data(), DType::f32, {kRows})};
    norm_forward(stream, args);
    Fp8 y(DType::e4m3, kRows, kCols);
    args.y = y.operand;
    norm_forward(stream, args);
    expect_cast_of<float8_e4m3>(y, plain);
  }
}

TEST_P(Fp8Ops, ActivationsWriteTheCastOfTheirOutput) {
  std::vector<float> x = normals(kRows * 2 * kCols, 1);
  std::vector<float> plain(static_cast<size_t>(kRows * kCols));
  Fp8 y(DType::e4m3, kRows, kCols);
  swiglu_forward(stream, {.gate_up = matrix(x, kRows, 2 * kCols), .y = matrix(plain, kRows, kCols)});
  swiglu_forward(stream, {.gate_up = matrix(x, kRows, 2 * kCols), .y = y.operand});
  expect_cast_of<float8_e4m3>(y, plain);
  Fp8 z(DType::e4m3, kRows, kCols);
  gelu_forward(stream, {.x = matrix(x, kRows, kCols), .y = matrix(plain, kRows, kCols)});
  gelu_forward(stream, {.x = matrix(x, kRows, kCols), .y = z.operand});
  expect_cast_of<float8_e4m3>(z, plain);
}

TEST_P(Fp8Ops, BackwardPassesWriteTheCastOfTheirOutput) {
  std::vector<float> x = normals(kRows * 2 * kCols, 1);
  std::vector<float> dy = normals(kRows * kCols, 2, 1e-3);
  std::vector<float> plain(x.size());
  Fp8 gate_up(DType::e5m2, kRows, 2 * kCols, 4096.0F);
  swiglu_backward(stream, {.dy = matrix(dy, kRows, kCols),
                           .gate_up = matrix(x, kRows, 2 * kCols),
                           .dgate_up = matrix(plain, kRows, 2 * kCols)});
  swiglu_backward(
      stream, {.dy = matrix(dy, kRows, kCols), .gate_up = matrix(x, kRows, 2 * kCols), .dgate_up = gate_up.operand});
  expect_cast_of<float8_e5m2>(gate_up, plain);

  std::vector<float> sums(kCols), sums_beside_fp8(kCols);
  std::vector<float> scratch(static_cast<size_t>(column_sum_scratch(kRows, kCols)));
  plain.resize(static_cast<size_t>(kRows * kCols));
  Fp8 dx(DType::e5m2, kRows, kCols, 4096.0F);
  GeluBackward args{.dy = matrix(dy, kRows, kCols),
                    .x = matrix(x, kRows, kCols),
                    .dx = matrix(plain, kRows, kCols),
                    .dbias = Tensor(sums.data(), DType::f32, {kCols}),
                    .scratch = Tensor(scratch.data(), DType::f32, {std::ssize(scratch)})};
  gelu_backward(stream, args);
  args.dx = dx.operand;
  args.dbias = Tensor(sums_beside_fp8.data(), DType::f32, {kCols});
  gelu_backward(stream, args);
  expect_cast_of<float8_e5m2>(dx, plain);
  for (size_t c = 0; c < sums.size(); ++c) EXPECT_NEAR(sums_beside_fp8[c], sums[c], 1e-6);
}

TEST_P(Fp8Ops, GemmIsThatOfTheOperands) {
  constexpr int64_t kDepth = 600;  // more than one piece of it
  for (const DType gradient : {DType::e4m3, DType::e5m2}) {
    std::vector<float> a = normals(kRows * kDepth, 1);
    std::vector<float> b = normals(kCols * kDepth, 2, 0.02);
    std::vector<float> bias = normals(kCols, 3);
    Fp8 a8(gradient, kRows, kDepth, 16.0F);
    Fp8 b8(DType::e4m3, kCols, kDepth, 512.0F);
    quantize(stream, {.x = matrix(a, kRows, kDepth), .y = a8.operand});
    quantize(stream, {.x = matrix(b, kCols, kDepth), .y = b8.operand});
    std::vector<float> c = normals(kRows * kCols, 4);
    const std::vector<float> before = c;
    gemm(stream, {.a = a8.operand.rows,
                  .b = b8.operand.rows,
                  .transpose_b = true,
                  .c = matrix(c, kRows, kCols),
                  .beta = 1.0F,
                  .bias = Tensor(bias.data(), DType::f32, {kCols}),
                  .a_inverse = &a8.inverse,
                  .b_inverse = &b8.inverse});
    double difference = 0.0;
    double norm = 0.0;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t col = 0; col < kCols; ++col) {
        const auto at = static_cast<size_t>(r * kCols + col);
        double sum = static_cast<double>(before[at]) + bias[static_cast<size_t>(col)];
        for (int64_t k = 0; k < kDepth; ++k) {
          const float left = gradient == DType::e4m3 ? static_cast<float>(a8.at<float8_e4m3>(r, k))
                                                     : static_cast<float>(a8.at<float8_e5m2>(r, k));
          sum += static_cast<double>(left) * static_cast<float>(b8.at<float8_e4m3>(col, k)) / (16.0 * 512.0);
        }
        difference += (c[at] - sum) * (c[at] - sum);
        norm += sum * sum;
      }
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-6);
  }
}

TEST_P(Fp8Ops, GemmRefusesWhatNoGpuMultiplies) {
  std::vector<float> x = normals(64, 1);
  std::vector<float> c(64);
  Fp8 a(DType::e4m3, 8, 8);
  Gemm args{.a = a.operand.rows, .b = a.operand.rows, .transpose_b = true, .c = matrix(c, 8, 8)};
  EXPECT_THROW(gemm(stream, args), Error) << "no inverses";
  args.a_inverse = args.b_inverse = &a.inverse;
  EXPECT_NO_THROW(gemm(stream, args));
  args.transpose_b = false;
  EXPECT_THROW(gemm(stream, args), Error);
  args.transpose_b = true;
  args.b = matrix(x, 8, 8);
  EXPECT_THROW(gemm(stream, args), Error);
  EXPECT_THROW(gelu_forward(stream, {.x = matrix(x, 8, 8), .y = {matrix(c, 8, 8), matrix(c, 8, 8), {}}}), Error);
  EXPECT_THROW(gelu_forward(stream, {.x = matrix(x, 8, 8), .y = {matrix(c, 8, 8), {}, a.operand.slot}}), Error);
}

INSTANTIATE_TEST_SUITE_P(Threads, Fp8Ops, ::testing::Values(1, 3));

// Slots of E4M3 on the host.
struct Slots {
  explicit Slots(int64_t count, int64_t length)
      : amax(static_cast<size_t>(count)),
        largest(amax.size(), 448.0F),
        scale(amax.size(), 1.0F),
        inverse(amax.size(), 1.0F),
        history(amax.size() * static_cast<size_t>(length)) {
    scales = {.amax = Tensor(amax.data(), DType::i32, {count}),
              .largest = Tensor(largest.data(), DType::f32, {count}),
              .scale = Tensor(scale.data(), DType::f32, {count}),
              .inverse = Tensor(inverse.data(), DType::f32, {count, 1})};
    if (length > 0) scales.history = Tensor(history.data(), DType::f32, {count, length});
  }
  void see(size_t slot, float value) { amax[slot] = std::bit_cast<int32_t>(value); }

  ThreadPool pool{1};
  Stream stream{pool};
  std::vector<int32_t> amax;
  std::vector<float> largest, scale, inverse, history;

  Scales scales;
};

TEST(Scales, AreTheLargestPowersOfTwoThatFit) {
  Slots slots(1, 0);
  for (uint32_t i = 0; i < 2000; ++i) {
    const auto amax = static_cast<float>(std::exp(20.0 * normal_at(5, i)));
    slots.see(0, amax);
    update_scales(slots.stream, {.scales = slots.scales, .margin = static_cast<int>(i % 3)});
    const double limit = std::ldexp(448.0, -static_cast<int>(i % 3));
    EXPECT_LE(static_cast<double>(amax) * slots.scale[0], limit) << amax;
    EXPECT_GT(2.0 * static_cast<double>(amax) * slots.scale[0], limit) << amax;
    EXPECT_EQ(slots.scale[0] * slots.inverse[0], 1.0F);
    EXPECT_EQ(slots.amax[0], 0);
  }
  slots.see(0, 0.0F);
  update_scales(slots.stream, {.scales = slots.scales});
  EXPECT_EQ(slots.scale[0], 1.0F);
  slots.see(0, std::numeric_limits<float>::infinity());
  update_scales(slots.stream, {.scales = slots.scales});
  EXPECT_TRUE(std::isnan(slots.scale[0])) << "without a history nothing else would tell";
}

TEST(Scales, FollowTheLargestOfTheHistory) {
  Slots slots(1, 3);
  const auto step = [&](float amax, Remember remember = Remember::as_newest) {
    slots.see(0, amax);
    update_scales(slots.stream, {.scales = slots.scales, .remember = remember});
    return slots.scale[0];
  };
  EXPECT_EQ(step(448.0F), 1.0F);
  EXPECT_EQ(step(448.0F / 4), 1.0F);
  EXPECT_EQ(step(448.0F / 16), 1.0F);
  EXPECT_EQ(step(448.0F / 16), 4.0F) << "the first is forgotten";
  EXPECT_EQ(slots.history, (std::vector<float>{28.0F, 28.0F, 112.0F}));
  EXPECT_EQ(step(448.0F * 2, Remember::in_place), 0.5F);
  EXPECT_EQ(slots.history, (std::vector<float>{896.0F, 28.0F, 112.0F}));
  slots.scale[0] = 7.0F;
  EXPECT_EQ(step(1.0F, Remember::not_at_all), 0.5F);
  slots.see(0, 28.0F);
  update_scales(slots.stream, {.scales = slots.scales, .most_recent = true});
  EXPECT_EQ(slots.scale[0], 16.0F);
}

TEST(Scales, ASkippedStepLeavesNoTrace) {
  Slots slots(2, 2);
  const UpdateScalars skipped{.skip = 1};
  slots.see(0, 448.0F);
  slots.see(1, 448.0F);
  update_scales(slots.stream, {.scales = slots.scales, .update = &skipped});
  EXPECT_EQ(slots.history, (std::vector<float>{0.0F, 0.0F, 0.0F, 0.0F}));
  EXPECT_EQ(slots.amax, (std::vector<int32_t>{0, 0}));
  slots.see(0, std::numeric_limits<float>::quiet_NaN());
  slots.see(1, 28.0F);
  update_scales(slots.stream, {.scales = slots.scales});
  EXPECT_EQ(slots.history, (std::vector<float>{0.0F, 0.0F, 28.0F, 0.0F}));
  EXPECT_EQ(slots.scale, (std::vector<float>{1.0F, 16.0F}));
}

}  // namespace
}  // namespace megalith::ops::testing
