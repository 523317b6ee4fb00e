#include "ops/gemm.h"

#include <cmath>

#include "ops/cases/gemm.h"

namespace megalith::ops::testing {

namespace {

const std::vector<GemmCase> kSmall = {
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

// What to compare the others with; the GEMMs of GPT-3 125M, forward and backward; those of the demo; and of generation.
const std::vector<GemmCase> kLarge = {
    {2048, 2048, 2048},
    {2048, 768, 768, false, true},
    {2048, 2304, 768, false, true},
    {2048, 3072, 768, false, true},
    {2048, 768, 3072, false, true},
    {2048, 768, 3072},
    {3072, 768, 2048, true, false, 1.0F, false, 0, true},
    {768, 768, 2048, true, false, 1.0F, false, 0, true},
    {256, 50304, 768, false, true},
    {256, 768, 50304},
    {50304, 768, 256, true, false, 1.0F, false, 0, true},
    {2048, 50304, 768, false, true},
    {2048, 768, 50304},
    {50304, 768, 2048, true, false, 1.0F, false, 0, true},
    {2048, 128, 128, false, true},
    {2048, 512, 128, false, true},
    {512, 128, 2048, true, false, 1.0F, false, 0, true},
    {128, 128, 2048, true, false, 1.0F, false, 0, true},
    {2048, 384, 384, false, true},
    {1, 768, 768, false, true},
    {1, 50304, 768, false, true},
};

std::string describe(const GemmCase& c) {
  return fmt::format("{}x{}x{} {}{}{}{}{}{}{}{}", c.m, c.n, c.k, c.transpose_a ? 't' : 'n', c.transpose_b ? 't' : 'n',
                     c.main_c ? " to main" : "", c.beta == 0.0F ? "" : " accumulate", c.bias ? " bias" : "",
                     c.addend ? " addend" : "", c.gelu ? " gelu" : "", c.gap == 0 ? "" : fmt::format(" gap {}", c.gap));
}

}  // namespace

Runner run_gemm(const GemmCase& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const DType to = c.main_c ? main_dtype(dtype) : dtype;
    const Buffer a(dtype, c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k, c.gap, in.at("a"));
    const Buffer b(dtype, c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n, c.gap, in.at("b"));
    const Buffer result = c.beta == 0.0F ? Buffer(to, c.m, c.n, c.gap) : Buffer(to, c.m, c.n, c.gap, in.at("c"));
    Gemm args{.a = a.tensor(),
              .transpose_a = c.transpose_a,
              .b = b.tensor(),
              .transpose_b = c.transpose_b,
              .c = result.tensor(),
              .beta = c.beta};
    std::vector<Buffer> held;  // what only some cases have
    if (c.bias) args.bias = held.emplace_back(vector_of(to, in.at("bias"))).vector();
    if (c.addend) args.addend = held.emplace_back(to, c.m, c.n, c.gap, in.at("c")).tensor();
    if (c.gelu) args.gelu_input = held.emplace_back(to, c.m, c.n, c.gap).tensor();
    gemm(stream, args);
    Named out{{"c", result.values()}};
    if (c.gelu) out["gelu_input"] = held.back().values();
    return out;
  };
}

Reference naive_gemm(const GemmCase& c) {
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

Named inputs_of(const GemmCase& c) {
  Named in{{"a", random_values(c.m * c.k, 1)}, {"b", random_values(c.k * c.n, 2)}};
  if (c.beta != 0.0F || c.addend) in["c"] = random_values(c.m * c.n, 3);
  if (c.bias) in["bias"] = random_values(c.n, 4);
  return in;
}

OpCases gemm_cases(Size size) {
  OpCases cases;
  for (const GemmCase& c : size == Size::small ? kSmall : kLarge) {
    cases.push_back({.operation = "gemm",
                     .shape = describe(c),
                     .run = run_gemm(c),
                     .inputs = [c] { return inputs_of(c); },
                     .expected = naive_gemm(c)});
  }
  return cases;
}

}  // namespace megalith::ops::testing
