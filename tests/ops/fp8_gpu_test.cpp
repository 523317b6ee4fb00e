#include <algorithm>
#include <bit>
#include <cmath>

#include "core/rng.h"
#include "ops/activation.h"
#include "ops/gemm.h"
#include "ops/norm.h"
#include "ops/op_test.h"
#include "ops/operands/quantize.h"
#include "ops/operands/scales.h"

// Operations on fp8 operands on a GPU: casts are those of the definition, all else is that of the CPU.

namespace megalith::ops::testing {
namespace {

#define MEGALITH_GPU_OR_SKIP() \
  if (!has_gpu()) GTEST_SKIP() << "skipped: there is no GPU that this build can use"

struct Sides {
  bool rows = true;
  bool columns = true;
};

// An fp8 operand on the device of the running test.
class Fp8 {
 public:
  Fp8(DType type, int64_t rows, int64_t cols, float by, Sides sides = {})
      : sides_(sides),
        rows_(type, sides.rows ? rows : 0, cols),
        columns_(type, sides.columns ? cols : 0, rows),
        scale_(by),
        inverse_(1.0F / by),
        amax_(0) {}

  Operand operand() const {
    return {sides_.rows ? rows_.tensor() : Tensor(),
            sides_.columns ? columns_.tensor() : Tensor(),
            {.scale = scale_.data(), .inverse = inverse_.data(), .amax = amax_.data()}};
  }
  const float* inverse() const { return inverse_.data(); }
  Named read() const {
    Named out{{"amax", {static_cast<double>(std::bit_cast<float>(amax_.value()))}}};
    if (sides_.rows) out["rows"] = rows_.values();
    if (sides_.columns) out["columns"] = columns_.values();
    return out;
  }

 private:
  Sides sides_;
  Buffer rows_, columns_;
  Placed<float> scale_, inverse_;
  Placed<uint32_t> amax_;
};

bool same_value(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// ---- casts ------------------------------------------------------------------------------------------------------

constexpr int kExponents[] = {-126, -100, -60, -30, -16, -10, -8, -6, -4, -2, 0, 2, 4, 6, 8, 10, 16, 60, 100, 126};

Values every_bf16() {
  Values values;
  for (uint32_t bits = 0; bits < 65536; ++bits) values.push_back(std::bit_cast<float>(bits << 16));
  return values;
}

// Any bits, and numbers whose last bits are those of ties or next to them.
Values many_f32(int64_t count) {
  Values values;
  for (uint32_t i = 0; std::ssize(values) < count; ++i) {
    uint32_t bits = philox(7, {i, 0, 0, 0})[0];
    if (i % 2 == 1) bits = (bits & 0xfff80000u) | (bits % 3 == 0 ? 0x80000u : bits % 3 == 1 ? 0x7ffffu : 0x40000u);
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

Runner run_cast(DType type, int64_t rows, int64_t cols, float scale) {
  return [=](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, rows, cols, 0, in.at("x"));
    const Fp8 y(type, rows, cols, scale);
    quantize(stream, {.x = x.tensor(), .y = y.operand()});
    return y.read();
  };
}

template <class F>
void expect_definition(const Values& x, const Named& cast, int64_t cols, float scale) {
  const int64_t rows = std::ssize(x) / cols;
  int64_t wrong = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<size_t>(r * cols + c);
      const auto wanted = static_cast<double>(static_cast<float>(F(static_cast<float>(x[i]) * scale)));
      const double turned = cast.at("columns")[static_cast<size_t>(c * rows + r)];
      if (same_value(cast.at("rows")[i], wanted) && same_value(turned, wanted)) continue;
      if (++wrong > 5) continue;
      ADD_FAILURE() << x[i] << " * " << scale << ": " << cast.at("rows")[i] << " in rows, " << turned
                    << " in columns, not " << wanted;
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(std::isnan(cast.at("amax")[0]));
}

void expect_casts(const Values& x, DType dtype, int64_t cols) {
  for (const int exponent : kExponents) {
    for (const DType type : {DType::e4m3, DType::e5m2}) {
      const float scale = std::ldexp(1.0F, exponent);
      const Named cast = run_on_gpu(run_cast(type, std::ssize(x) / cols, cols, scale), dtype, {{"x", x}});
      dispatch_fp8(type, [&]<class F>(std::type_identity<F>) { expect_definition<F>(x, cast, cols, scale); });
    }
  }
}

TEST(Fp8OnGpu, CastsOfEveryBf16AreThoseOfTheDefinition) {
  MEGALITH_GPU_OR_SKIP();
  expect_casts(every_bf16(), DType::bf16, 256);
}

TEST(Fp8OnGpu, CastsOfFp32AreThoseOfTheDefinition) {
  MEGALITH_GPU_OR_SKIP();
  expect_casts(many_f32(1000 * 1000), DType::f32, 1000);
}

TEST(Fp8OnGpu, AmaxTellsWhatTheCastHides) {
  MEGALITH_GPU_OR_SKIP();
  Values x = random_values(300 * 200, 1);
  x[12345] = -std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isinf(run_on_gpu(run_cast(DType::e4m3, 300, 200, 1.0F), DType::bf16, {{"x", x}}).at("amax")[0]));
  x[54321] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(run_on_gpu(run_cast(DType::e4m3, 300, 200, 1.0F), DType::bf16, {{"x", x}}).at("amax")[0]));
  const Values tiny(400, 0x1p-140);  // subnormal
  EXPECT_EQ(run_on_gpu(run_cast(DType::e4m3, 20, 20, 1.0F), DType::f32, {{"x", tiny}}).at("amax")[0], 0x1p-140);
}

// ---- what is computed and cast in one operation ---------------------------------------------------------------------

struct Computed {
  const char* name;
  int64_t rows;
  int64_t cols;
  int64_t gap = 0;
  DType type = DType::e4m3;
  float scale = 64.0F;
};

void PrintTo(const Computed& c, std::ostream* out) {
  *out << c.name << " (" << c.rows << ", " << c.cols << ") gap " << c.gap << " " << name_of(c.type);
}

std::vector<Computed> computed_cases() {
  std::vector<Computed> cases;
  struct Shape {
    int64_t rows, cols, gap;
  };
  for (const Shape& shape :
       {Shape{1, 5, 0}, Shape{33, 70, 0}, Shape{150, 37, 3}, Shape{128, 128, 0}, Shape{257, 272, 0}, Shape{304, 400, 8},
        Shape{512, 1024, 0}, Shape{80, 2048, 0}, Shape{48, 12288, 0}, Shape{16, 16384, 0}}) {
    for (const char* name : {"layer_norm", "rms_norm", "gelu_forward", "swiglu_forward"})
      cases.push_back({name, shape.rows, shape.cols, shape.gap});
    for (const char* name : {"gelu_backward", "swiglu_backward"})
      cases.push_back({name, shape.rows, shape.cols, shape.gap, DType::e5m2, 4096.0F});
  }
  return cases;
}

int64_t output_cols(const Computed& c) {
  return c.name == std::string("swiglu_backward") ? 2 * c.cols : c.cols;
}

Named inputs_of(const Computed& c) {
  return {{"x", random_values(c.rows * c.cols, 1)},
          {"up", random_values(c.rows * c.cols, 2)},
          {"dy", random_values(c.rows * c.cols, 3, 0.1)},
          {"weight", random_values(c.cols, 4)},
          {"bias", random_values(c.cols, 5)},
          {"dbias", random_values(c.cols, 6)}};
}

void run_norm(Stream& stream, const Computed& c, DType dtype, const Named& in, const Operand& y, Named& out) {
  const bool centered = c.name == std::string("layer_norm");
  const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
  const Buffer weight = vector_of(dtype, in.at("weight"));
  const Buffer bias = vector_of(dtype, in.at("bias"));
  const Buffer mean(DType::f32, 1, c.rows), rstd(DType::f32, 1, c.rows);
  norm_forward(stream, {.kind = centered ? NormKind::layer_norm : NormKind::rms_norm,
                        .x = x.tensor(),
                        .weight = weight.vector(),
                        .bias = centered ? bias.vector() : Tensor(),
                        .y = y,
                        .mean = centered ? mean.vector() : Tensor(),
                        .rstd = rstd.vector()});
  out["rstd"] = rstd.values();
}

void run_gelu(Stream& stream, const Computed& c, DType dtype, const Named& in, const Operand& y, Named& out) {
  const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
  if (c.name == std::string("gelu_forward")) return gelu_forward(stream, {.x = x.tensor(), .y = y});
  const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
  const Buffer dbias = vector_of(DType::f32, in.at("dbias"));
  const Buffer scratch(DType::f32, 1, column_sum_scratch(c.rows, c.cols));
  gelu_backward(stream, {.dy = dy.tensor(),
                         .x = x.tensor(),
                         .dx = y,
                         .dbias = y ? dbias.vector() : Tensor(),
                         .scratch = scratch.vector()});
  if (y) out["dbias"] = dbias.values();
}

void run_swiglu(Stream& stream, const Computed& c, DType dtype, const Named& in, const Operand& y) {
  Values both;
  for (int64_t r = 0; r < c.rows; ++r) {
    for (const char* half : {"x", "up"}) {
      const auto first = in.at(half).begin() + r * c.cols;
      both.insert(both.end(), first, first + c.cols);
    }
  }
  const Buffer gate_up(dtype, c.rows, 2 * c.cols, c.gap, both);
  if (c.name == std::string("swiglu_forward")) return swiglu_forward(stream, {.gate_up = gate_up.tensor(), .y = y});
  const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
  swiglu_backward(stream, {.dy = dy.tensor(), .gate_up = gate_up.tensor(), .dgate_up = y});
}

Runner run_computed(const Computed& c, Sides sides) {
  return [c, sides](Stream& stream, DType dtype, const Named& in) {
    const Fp8 y(c.type, c.rows, output_cols(c), c.scale, sides);
    const std::string name = c.name;
    Named out;
    if (name.ends_with("norm")) {
      run_norm(stream, c, dtype, in, y.operand(), out);
    } else if (name.starts_with("gelu")) {
      run_gelu(stream, c, dtype, in, y.operand(), out);
    } else {
      run_swiglu(stream, c, dtype, in, y.operand());
    }
    out.merge(y.read());
    return out;
  };
}

// The place of a number among those of its type.
int place_of(DType type, double value) {
  return dispatch_fp8(type, [&]<class F>(std::type_identity<F>) {
    const uint8_t bits = F(static_cast<float>(value)).bits;
    return (bits & 0x80) != 0 ? -(bits & 0x7f) : bits & 0x7f;
  });
}

// All but one number in a thousand are the same, and those that are not are neighbours.
void expect_neighbours(DType type, const Values& actual, const Values& expected) {
  int64_t others = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_FALSE(std::isnan(actual[i])) << i;
    if (actual[i] == expected[i]) continue;
    ++others;
    ASSERT_LE(std::abs(place_of(type, actual[i]) - place_of(type, expected[i])), 1)
        << i << ": " << actual[i] << ", not " << expected[i];
  }
  EXPECT_LE(others, std::max<int64_t>(1, std::ssize(expected) / 1000));
}

Values transposed(const Values& values, int64_t rows, int64_t cols) {
  Values out;
  for (int64_t col = 0; col < cols; ++col) {
    for (int64_t row = 0; row < rows; ++row) out.push_back(values[static_cast<size_t>(row * cols + col)]);
  }
  return out;
}

class Fp8ComputedOnGpu : public ::testing::TestWithParam<Computed> {};

TEST_P(Fp8ComputedOnGpu, IsThatOfTheCpuByRowsAndByColumns) {
  MEGALITH_GPU_OR_SKIP();
  const Computed& c = GetParam();
  const Named in = inputs_of(c);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    SCOPED_TRACE(name_of(dtype));
    const Named expected = run_on(2, run_computed(c, {}), dtype, in);
    const Named both = run_on_gpu(run_computed(c, {}), dtype, in);
    expect_neighbours(c.type, both.at("rows"), expected.at("rows"));
    EXPECT_NEAR(both.at("amax")[0], expected.at("amax")[0], 1e-5 * expected.at("amax")[0]);
    if (expected.contains("dbias")) {
      EXPECT_LT(relative_error(both.at("dbias"), expected.at("dbias")), 1e-5);
    }
    if (expected.contains("rstd")) {
      EXPECT_LT(relative_error(both.at("rstd"), expected.at("rstd")), 1e-5);
    }
    EXPECT_EQ(both.at("columns"), transposed(both.at("rows"), c.rows, output_cols(c)));
    const Named rows = run_on_gpu(run_computed(c, {.columns = false}), dtype, in);
    const Named columns = run_on_gpu(run_computed(c, {.rows = false}), dtype, in);
    const Named none = run_on_gpu(run_computed(c, {.rows = false, .columns = false}), dtype, in);
    EXPECT_EQ(rows.at("rows"), both.at("rows"));
    EXPECT_EQ(columns.at("columns"), both.at("columns"));
    for (const Named& other : {rows, columns, none}) EXPECT_EQ(other.at("amax"), both.at("amax"));
    EXPECT_EQ(run_on_gpu(run_computed(c, {}), dtype, in), both) << "a second run";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Fp8ComputedOnGpu, ::testing::ValuesIn(computed_cases()));

// ---- GEMMs ----------------------------------------------------------------------------------------------------------

struct Product {
  int64_t m, n, k;
  DType a = DType::e4m3;
  DType b = DType::e4m3;
  DType c = DType::bf16;
  bool bias = false;
  bool addend = false;
  float beta = 0.0F;
  bool fast = false;
};

void PrintTo(const Product& p, std::ostream* out) {
  *out << fmt::format("{}x{}x{} {}*{} to {}{}{}{}{}", p.m, p.n, p.k, name_of(p.a), name_of(p.b), name_of(p.c),
                      p.bias ? " bias" : "", p.addend ? " addend" : "", p.beta != 0.0F ? " accumulate" : "",
                      p.fast ? " fast" : "");
}

std::vector<Product> products() {
  constexpr DType kInput = DType::e4m3;
  constexpr DType kGradient = DType::e5m2;
  std::vector<Product> all;
  for (const int64_t k : {16, 48, 1040, 8192}) {
    for (const bool fast : {false, true}) {
      all.push_back({.m = 144, .n = 208, .k = k, .bias = true, .fast = fast});
      all.push_back({.m = 128, .n = 256, .k = k, .bias = true, .addend = true, .fast = fast});
    }
    all.push_back({.m = 176, .n = 128, .k = k, .a = kGradient, .b = kInput});
    all.push_back({.m = 176, .n = 128, .k = k, .a = kInput, .b = kGradient});
    for (const float beta : {0.0F, 1.0F}) {
      all.push_back({.m = 112, .n = 144, .k = k, .a = kGradient, .b = kInput, .c = DType::f32, .beta = beta});
      all.push_back({.m = 112, .n = 144, .k = k, .c = DType::f32, .beta = beta});
    }
  }
  return all;
}

// The operands as numbers, of random values times scales.
Named operands_of(const Product& p) {
  const auto cast = [](DType type, Values values) {
    for (double& value : values) {
      dispatch_fp8(type, [&]<class F>(std::type_identity<F>) {
        value = static_cast<double>(static_cast<float>(F(static_cast<float>(value))));
      });
    }
    return values;
  };
  return {{"a", cast(p.a, random_values(p.m * p.k, 1, 16.0))},
          {"b", cast(p.b, random_values(p.n * p.k, 2, 32.0))},
          {"c", random_values(p.m * p.n, 3, 0.1 * std::sqrt(static_cast<double>(p.k)))},
          {"bias", random_values(p.n, 4)}};
}

constexpr float kInverseA = 1.0F / 16.0F;
constexpr float kInverseB = 1.0F / 32.0F;

Runner run_product(const Product& p) {
  return [p](Stream& stream, DType, const Named& in) {
    const Buffer a(p.a, p.m, p.k, 0, in.at("a")), b(p.b, p.n, p.k, 0, in.at("b"));
    const Placed<float> a_inverse(kInverseA), b_inverse(kInverseB);
    const Buffer c = p.beta == 0.0F ? Buffer(p.c, p.m, p.n) : Buffer(p.c, p.m, p.n, 0, in.at("c"));
    const Buffer addend(p.c, p.m, p.n, 0, in.at("c"));
    const Buffer bias = vector_of(p.c, in.at("bias"));
    gemm(stream, {.a = a.tensor(),
                  .b = b.tensor(),
                  .transpose_b = true,
                  .c = c.tensor(),
                  .beta = p.beta,
                  .bias = p.bias ? bias.vector() : Tensor(),
                  .addend = p.addend ? addend.tensor() : Tensor(),
                  .a_inverse = a_inverse.data(),
                  .b_inverse = b_inverse.data(),
                  .fast_accumulation = p.fast});
    return Named{{"c", c.values()}};
  };
}

Values exact_product(const Product& p, const Named& in) {
  Values result;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const double* a = in.at("a").data() + i * p.k;
      const double* b = in.at("b").data() + j * p.k;
      double sum = 0.0;
      for (int64_t l = 0; l < p.k; ++l) sum += a[l] * b[l];
      sum *= static_cast<double>(kInverseA) * kInverseB;
      if (p.bias) sum += in.at("bias")[static_cast<size_t>(j)];
      if (p.addend || p.beta != 0.0F) sum += in.at("c")[static_cast<size_t>(i * p.n + j)];
      result.push_back(sum);
    }
  }
  return result;
}

class Fp8GemmOnGpu : public ::testing::TestWithParam<Product> {};

TEST_P(Fp8GemmOnGpu, IsThatOfTheOperands) {
  MEGALITH_GPU_OR_SKIP();
  const Product& p = GetParam();
  const Named in = operands_of(p);
  const Values actual = run_on_gpu(run_product(p), DType::bf16, in).at("c");
  EXPECT_LT(relative_error(actual, exact_product(p, in)), p.fast ? 1e-2 : 3e-3);
  EXPECT_EQ(run_on_gpu(run_product(p), DType::bf16, in).at("c"), actual) << "a second run";
}

INSTANTIATE_TEST_SUITE_P(Ops, Fp8GemmOnGpu, ::testing::ValuesIn(products()));

}  // namespace
}  // namespace megalith::ops::testing
