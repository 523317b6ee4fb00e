#include "ops/gemm.h"

#include <cmath>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

struct Case {
  int64_t m, n, k;
  bool transpose_a = false;
  bool transpose_b = false;
  float beta = 0.0F;
  bool bias = false;
  int64_t gap = 0;
  bool main_c = false;  // c in the main dtype, as a weight gradient has it
  bool addend = false;
  bool gelu = false;
};

const std::vector<Case> kCases = {
    {1, 1, 1},
    {1, 7, 5, false, true, 0.0F, true},
    {3, 1, 9, true, false},
    {17, 33, 65, false, true, 0.0F, true, 3},
    {17, 33, 65, true, false, 1.0F, false, 3, true},
    {17, 33, 65, true, true, 1.0F, true, 2},
    {64, 64, 64, false, false, 1.0F, true},
    {130, 257, 300, false, true, 0.0F, true},
    {257, 130, 519, true, false, 1.0F, false, 0, true},
    {700, 900, 20, false, true, 0.0F, true, 1},
    {900, 1700, 11, true, false, 1.0F},
    {33, 17, 40, false, true, 0.0F, true, 2, false, true},
    {128, 256, 64, false, true, 0.0F, true, 0, false, true},
    {33, 17, 40, false, true, 0.0F, true, 1, false, false, true},
    {128, 256, 64, false, true, 0.0F, true, 0, false, false, true},
    {64, 32, 16, false, true, 0.0F, false, 0, false, false, true},
};

std::string describe(const Case& c) {
  return fmt::format("({}, {}, {}) transpose {}{} beta {} bias {} gap {} main {} addend {} gelu {}", c.m, c.n, c.k,
                     c.transpose_a, c.transpose_b, c.beta, c.bias, c.gap, c.main_c, c.addend, c.gelu);
}

Runner run_gemm(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const Buffer a(dtype, c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k, c.gap, in.at("a"));
    const Buffer b(dtype, c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n, c.gap, in.at("b"));
    const Buffer bias = vector_of(dtype, in.at("bias"));
    const DType c_dtype = c.main_c ? main_dtype(dtype) : dtype;
    const Buffer result =
        c.beta == 0.0F ? Buffer(c_dtype, c.m, c.n, c.gap) : Buffer(c_dtype, c.m, c.n, c.gap, in.at("c"));
    const Buffer addend(c_dtype, c.m, c.n, c.gap, in.at("c"));
    const Buffer gelu_input(c_dtype, c.m, c.n, c.gap);
    gemm(stream, {.a = a.tensor(),
                  .transpose_a = c.transpose_a,
                  .b = b.tensor(),
                  .transpose_b = c.transpose_b,
                  .c = result.tensor(),
                  .beta = c.beta,
                  .bias = c.bias ? bias.vector() : Tensor(),
                  .addend = c.addend ? addend.tensor() : Tensor(),
                  .gelu_input = c.gelu ? gelu_input.tensor() : Tensor()});
    Named out{{"c", result.values()}};
    if (c.gelu) out["gelu_input"] = gelu_input.values();
    return out;
  };
}

Reference naive_gemm(const Case& c) {
  return [c](const Named& in) {
    const Values& a = in.at("a");
    const Values& b = in.at("b");
    Values result(static_cast<size_t>(c.m * c.n));
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = c.bias ? in.at("bias")[static_cast<size_t>(j)] : 0.0;
        if (c.beta != 0.0F || c.addend) sum += in.at("c")[static_cast<size_t>(i * c.n + j)];
        for (int64_t l = 0; l < c.k; ++l) {
          sum += a[static_cast<size_t>(c.transpose_a ? l * c.m + i : i * c.k + l)] *
                 b[static_cast<size_t>(c.transpose_b ? j * c.k + l : l * c.n + j)];
        }
        result[static_cast<size_t>(i * c.n + j)] = sum;
      }
    }
    if (!c.gelu) return Named{{"c", result}};
    Named out{{"gelu_input", result}};
    for (double& x : result) x = 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    out["c"] = result;
    return out;
  };
}

Named inputs_of(const Case& c) {
  return {{"a", random_values(c.m * c.k, 1)},
          {"b", random_values(c.k * c.n, 2)},
          {"c", random_values(c.m * c.n, 3)},
          {"bias", random_values(c.n, 4)}};
}

TEST(Gemm, MatchesNaiveProducts) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    expect_matches(run_gemm(c), naive_gemm(c), inputs_of(c));
  }
}

TEST(Gemm, AccumulatesBf16ProductsInMainDtype) {
  const Case c{40, 50, 2000, true, false, 1.0F, false, 0, true};
  const Named in = inputs_of(c);
  const Named exact = naive_gemm(c)(in);
  EXPECT_LT(relative_error(run_on(2, run_gemm(c), DType::bf16, in).at("c"), exact.at("c")), 1e-5);
}

TEST(Gemm, NanInAnInputIsSeen) {
  const Case c{5, 6, 7};
  Named in = inputs_of(c);
  in.at("a")[0] = NAN;
  const Named out = run_on(1, run_gemm(c), DType::f32, in);
  EXPECT_TRUE(std::isnan(out.at("c")[0]));
  EXPECT_FALSE(std::isnan(out.at("c").back()));
}

TEST(Gemm, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  {
    const Buffer square(DType::f32, 4, 4), other(DType::f32, 4, 4);
    const Gemm product{.a = square.tensor(), .b = square.tensor(), .c = other.tensor()};
    Gemm both = product;
    both.beta = 1.0F;
    both.addend = square.tensor();
    expect_refused([&] { gemm(stream, both); });
    Gemm itself = product;
    itself.addend = other.tensor();
    expect_refused([&] { gemm(stream, itself); });
  }
  const Buffer a(DType::f32, 4, 5), b(DType::f32, 5, 6), c(DType::f32, 4, 6), wrong(DType::f32, 4, 7);
  const Buffer narrow(DType::bf16, 5, 6), long_bias(DType::f32, 1, 7);
  const Tensor none;
  expect_refused([&] { gemm(stream, {.a = a.tensor(), .b = b.tensor(), .c = wrong.tensor()}); });
  expect_refused([&] { gemm(stream, {.a = a.tensor(), .b = narrow.tensor(), .c = c.tensor()}); });
  expect_refused([&] { gemm(stream, {.a = a.tensor(), .transpose_a = true, .b = b.tensor(), .c = c.tensor()}); });
  expect_refused([&] { gemm(stream, {.a = a.tensor(), .b = b.tensor(), .c = c.tensor(), .beta = 0.5F}); });
  expect_refused(
      [&] { gemm(stream, {.a = a.tensor(), .b = b.tensor(), .c = c.tensor(), .bias = long_bias.vector()}); });
  expect_refused([&] { gemm(stream, {.a = none, .b = b.tensor(), .c = c.tensor()}); });
}

}  // namespace
}  // namespace megalith::ops::testing
