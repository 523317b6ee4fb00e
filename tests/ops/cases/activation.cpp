#include "ops/cases/activation.h"

#include <cmath>
#include <numbers>

#include "ops/activation.h"

namespace megalith::ops::testing {

namespace {

using Case = ActivationCase;

const std::vector<Case> kSmall = {{1, 1, 0},    {1, 7, 0},     {5, 64, 0},     {3, 33, 5},  {131, 517, 0},
                                  {70, 300, 4}, {2, 20000, 8}, {257, 2048, 0}, {300, 96, 8}};
const std::vector<Case> kLarge = {{2048, 3072, 0}};

std::string describe(const Case& c) {
  return fmt::format("({}, {}) gap {}", c.rows, c.cols, c.gap);
}

double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double silu(double x) {
  return x / (1.0 + std::exp(-x));
}

Named naive_gelu(const Named& in) {
  Values y;
  for (const double x : in.at("x")) y.push_back(gelu(x));
  return {{"y", y}};
}

Reference naive_swiglu(const Case& c) {
  return [c](const Named& in) {
    Values y;
    for (int64_t r = 0; r < c.rows; ++r) {
      const double* row = in.at("x").data() + r * 2 * c.cols;
      for (int64_t i = 0; i < c.cols; ++i) y.push_back(silu(row[i]) * row[c.cols + i]);
    }
    return Named{{"y", y}};
  };
}

enum class Where { separate, over_dy, over_x };

// With "dbias0" in the inputs, the gradient of the bias begins there.
Runner run_gelu_backward(const Case& c, Where where) {
  return [c, where](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
    const Buffer dx = where == Where::over_dy ? dy : where == Where::over_x ? x : Buffer(dtype, c.rows, c.cols, c.gap);
    GeluBackward args{.dy = dy.tensor(), .x = x.tensor(), .dx = dx.tensor()};
    if (!in.contains("dbias0")) {
      gelu_backward(stream, args);
      return Named{{"dx", dx.values()}};
    }
    const Buffer dbias = vector_of(main_dtype(dtype), in.at("dbias0"));
    const Buffer scratch(main_dtype(dtype), 1, column_sum_scratch(c.rows, c.cols));
    args.dbias = dbias.vector();
    args.scratch = scratch.vector();
    gelu_backward(stream, args);
    return Named{{"dx", dx.values()}, {"dbias", dbias.values()}};
  };
}

Reference naive_gelu_backward(const Case& c) {
  return [c](const Named& in) {
    Named plain = in;
    plain.erase("dbias0");
    Named out = run_in_double(run_gelu_backward(c, Where::separate), plain);
    if (!in.contains("dbias0")) return out;
    out["dbias"] = in.at("dbias0");
    for (size_t i = 0; i < out["dx"].size(); ++i) out["dbias"][i % static_cast<size_t>(c.cols)] += out["dx"][i];
    return out;
  };
}

Runner run_swiglu(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, 2 * c.cols, c.gap, in.at("x"));
    const Buffer y(dtype, c.rows, c.cols, c.gap);
    swiglu_forward(stream, {.gate_up = x.tensor(), .y = y.tensor()});
    return Named{{"y", y.values()}};
  };
}

Runner run_swiglu_backward(const Case& c, Where where) {
  return [c, where](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, 2 * c.cols, c.gap, in.at("x"));
    const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
    const Buffer dx = where == Where::over_x ? x : Buffer(dtype, c.rows, 2 * c.cols, c.gap);
    swiglu_backward(stream, {.dy = dy.tensor(), .gate_up = x.tensor(), .dgate_up = dx.tensor()});
    return Named{{"dx", dx.values()}};
  };
}

Named gelu_inputs(const Case& c) {
  return {{"x", random_values(c.rows * c.cols, 1, 2.0)}, {"dy", random_values(c.rows * c.cols, 6)}};
}

Named swiglu_inputs(const Case& c) {
  return {{"x", random_values(2 * c.rows * c.cols, 2, 2.0)}, {"dy", random_values(c.rows * c.cols, 6)}};
}

}  // namespace

Runner run_gelu(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer y(dtype, c.rows, c.cols, c.gap);
    gelu_forward(stream, {.x = x.tensor(), .y = y.tensor()});
    return Named{{"y", y.values()}};
  };
}

OpCases activation_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    const std::string shape = describe(c);
    const auto gelu_in = [c] { return gelu_inputs(c); };
    const auto swiglu_in = [c] { return swiglu_inputs(c); };
    const bool is_differentiated = c.rows * c.cols <= 1000;
    cases.push_back({.operation = "gelu_forward",
                     .shape = shape,
                     .run = run_gelu(c),
                     .inputs = gelu_in,
                     .expected = naive_gelu,
                     .backward = is_differentiated ? run_gelu_backward(c, Where::separate) : Runner(),
                     .output = "y"});
    cases.push_back({.operation = "swiglu_forward",
                     .shape = shape,
                     .run = run_swiglu(c),
                     .inputs = swiglu_in,
                     .expected = naive_swiglu(c),
                     .backward = is_differentiated ? run_swiglu_backward(c, Where::separate) : Runner(),
                     .output = "y"});
    cases.push_back({.operation = "gelu_backward",
                     .shape = shape,
                     .run = run_gelu_backward(c, Where::separate),
                     .inputs = gelu_in});
    cases.push_back({.operation = "swiglu_backward",
                     .shape = shape,
                     .run = run_swiglu_backward(c, Where::separate),
                     .inputs = swiglu_in});
    if (size == Size::large) continue;
    for (const Where where : {Where::over_dy, Where::over_x}) {
      cases.push_back({.operation = "gelu_backward",
                       .shape = shape + (where == Where::over_x ? " over x" : " over dy"),
                       .run = run_gelu_backward(c, where),
                       .inputs = gelu_in,
                       .expected = naive_gelu_backward(c)});
    }
    cases.push_back({.operation = "gelu_backward",
                     .shape = shape + " with dbias",
                     .run = run_gelu_backward(c, Where::over_dy),
                     .inputs =
                         [c] {
                           Named in = gelu_inputs(c);
                           in["dbias0"] = random_values(c.cols, 7);
                           return in;
                         },
                     .expected = naive_gelu_backward(c)});
    cases.push_back(
        {.operation = "swiglu_backward",
         .shape = shape + " over x",
         .run = run_swiglu_backward(c, Where::over_x),
         .inputs = swiglu_in,
         .expected = [c](const Named& in) { return run_in_double(run_swiglu_backward(c, Where::separate), in); }});
  }
  return cases;
}

}  // namespace megalith::ops::testing
