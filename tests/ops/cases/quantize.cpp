#include "ops/operands/quantize.h"

#include <cmath>

#include "ops/cases/op_case.h"
#include "ops/elementwise.h"

namespace megalith::ops::testing {

namespace {

struct Case {
  int64_t rows;
  int64_t cols;
  DType type;
};

const std::vector<Case> kSmall = {{1, 1, DType::e4m3},    {5, 16, DType::e5m2},    {33, 70, DType::e4m3},
                                  {150, 37, DType::e5m2}, {257, 272, DType::e4m3}, {128, 128, DType::e5m2}};
const std::vector<Case> kLarge = {{4096, 8192, DType::e4m3}};

constexpr float kScale = 128.0F;  // the largest of some normal numbers are beyond E4M3

// fp8 is cast from what models compute in; a run in double takes fp32.
DType cast_from(DType dtype) {
  return dtype == DType::f64 ? DType::f32 : dtype;
}

double rounded(DType type, double value) {
  return dispatch_fp8(type, [&]<class F>(std::type_identity<F>) {
    return static_cast<double>(static_cast<float>(F(static_cast<float>(value))));
  });
}

Values transposed(const Values& values, int64_t rows, int64_t cols) {
  Values out;
  for (int64_t col = 0; col < cols; ++col) {
    for (int64_t row = 0; row < rows; ++row) out.push_back(values[static_cast<size_t>(row * cols + col)]);
  }
  return out;
}

enum class Written { rows, columns, both, none };

// With "dbias0" in the inputs, column sums are added to that.
Runner run_quantize(const Case& c, Written written) {
  return [c, written](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(cast_from(dtype), c.rows, c.cols, 0, in.at("x"));
    const Placed<float> scale(kScale);
    const Placed<float> inverse(1.0F / kScale);
    const Placed<float> amax(0.0F);
    const Slot slot{.scale = scale.data(), .inverse = inverse.data(), .amax = reinterpret_cast<uint32_t*>(amax.data())};
    const bool has_rows = written == Written::rows || written == Written::both;
    const bool has_columns = written == Written::columns || written == Written::both;
    const Buffer rows(c.type, has_rows ? c.rows : 0, c.cols, 0);
    const Buffer columns(c.type, has_columns ? c.cols : 0, c.rows, 0);
    Quantize args{.x = x.tensor(),
                  .y = Operand(has_rows ? rows.tensor() : Tensor(), has_columns ? columns.tensor() : Tensor(), slot)};
    const bool sums = in.contains("dbias0");
    const Buffer dbias = vector_of(DType::f32, sums ? in.at("dbias0") : Values());
    const Buffer scratch(DType::f32, sums ? 1 : 0, column_sum_scratch(c.rows, c.cols));
    if (sums) {
      args.dbias = dbias.vector();
      args.scratch = scratch.vector();
    }
    quantize(stream, args);
    Named out{{"amax", {static_cast<double>(amax.value())}}};
    if (has_rows) out["rows"] = rows.values();
    if (has_columns) out["columns"] = columns.values();
    if (sums) out["dbias"] = dbias.values();
    return out;
  };
}

Reference naive_quantize(const Case& c, Written written) {
  return [c, written](const Named& in) {
    Values cast;
    double amax = 0.0;
    for (const double x : in.at("x")) {
      cast.push_back(rounded(c.type, x * kScale));
      amax = std::max(amax, std::fabs(x));
    }
    Named out{{"amax", {amax}}};
    if (written == Written::rows || written == Written::both) out["rows"] = cast;
    if (written == Written::columns || written == Written::both) out["columns"] = transposed(cast, c.rows, c.cols);
    if (!in.contains("dbias0")) return out;
    out["dbias"] = in.at("dbias0");
    for (size_t i = 0; i < cast.size(); ++i) out["dbias"][i % static_cast<size_t>(c.cols)] += in.at("x")[i];
    return out;
  };
}

OpCase quantize_case(const Case& c, Written written, bool sums) {
  constexpr const char* kWritten[] = {"rows", "columns", "rows and columns", "amax alone"};
  return {.operation = "quantize",
          .shape = fmt::format("({}, {}) {} {}{}", c.rows, c.cols, name_of(c.type),
                               kWritten[static_cast<size_t>(written)], sums ? " with dbias" : ""),
          .run = run_quantize(c, written),
          .inputs =
              [c, sums] {
                Named in{{"x", random_values(c.rows * c.cols, 1)}};
                if (sums) in["dbias0"] = random_values(c.cols, 2);
                for (auto& [name, values] : in) {
                  for (double& value : values) value = std::round(32.0 * value) / 32.0;  // so that no sum rounds
                }
                return in;
              },
          .expected = naive_quantize(c, written),
          .is_exact = true};
}

OpCase transpose_case(const Case& c) {
  return {.operation = "transpose",
          .shape = fmt::format("({}, {}) {}", c.rows, c.cols, name_of(c.type)),
          .run =
              [c](Stream& stream, DType, const Named& in) {
                const Buffer rows(c.type, c.rows, c.cols, 0, in.at("rows"));
                const Buffer columns(c.type, c.cols, c.rows);
                transpose(stream, {.rows = rows.tensor(), .columns = columns.tensor()});
                return Named{{"columns", columns.values()}};
              },
          .inputs =
              [c] {
                Values values = random_values(c.rows * c.cols, 3);
                for (double& value : values) value = rounded(c.type, value);
                return Named{{"rows", values}};
              },
          .expected =
              [c](const Named& in) {
                return Named{{"columns", transposed(in.at("rows"), c.rows, c.cols)}};
              },
          .is_exact = true};
}

}  // namespace

OpCases quantize_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    cases.push_back(quantize_case(c, Written::both, false));
    cases.push_back(transpose_case(c));
    if (size == Size::large) continue;
    cases.push_back(quantize_case(c, Written::rows, true));
    cases.push_back(quantize_case(c, Written::columns, false));
    cases.push_back(quantize_case(c, Written::none, false));
  }
  return cases;
}

}  // namespace megalith::ops::testing
