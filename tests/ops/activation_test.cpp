#include "ops/activation.h"

#include <cmath>
#include <numbers>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

struct Case {
  int64_t rows, cols, gap;
};
const std::vector<Case> kCases = {{1, 1, 0},    {1, 7, 0},     {5, 64, 0},     {3, 33, 5},  {131, 517, 0},
                                  {70, 300, 4}, {2, 20000, 8}, {257, 2048, 0}, {300, 96, 8}};

double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double silu(double x) {
  return x / (1.0 + std::exp(-x));
}

Runner run_gelu(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer y(dtype, c.rows, c.cols, c.gap);
    gelu_forward(stream, {.x = x.tensor(), .y = y.tensor()});
    return Named{{"y", y.values()}};
  };
}

enum class Place { separate, over_dy, over_x };

Runner run_gelu_backward(const Case& c, Place place) {
  return [c, place](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
    const Buffer fresh(dtype, c.rows, c.cols, c.gap);
    const Buffer& dx = place == Place::over_dy ? dy : place == Place::over_x ? x : fresh;
    gelu_backward(stream, {.dy = dy.tensor(), .x = x.tensor(), .dx = dx.tensor()});
    return Named{{"dx", dx.values()}};
  };
}

// With the gradient of the bias, which begins at "dbias0".
Runner run_gelu_backward_bias(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
    const Buffer dbias = vector_of(main, in.at("dbias0"));
    const Buffer scratch(main, 1, column_sum_scratch(c.rows, c.cols));
    gelu_backward(
        stream,
        {.dy = dy.tensor(), .x = x.tensor(), .dx = dy.tensor(), .dbias = dbias.vector(), .scratch = scratch.vector()});
    return Named{{"dx", dy.values()}, {"dbias", dbias.values()}};
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

Runner run_swiglu_backward(const Case& c, bool in_place) {
  return [c, in_place](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, 2 * c.cols, c.gap, in.at("x"));
    const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
    const Buffer dx(dtype, c.rows, 2 * c.cols, c.gap);
    const Buffer& result = in_place ? x : dx;
    swiglu_backward(stream, {.dy = dy.tensor(), .gate_up = x.tensor(), .dgate_up = result.tensor()});
    return Named{{"dx", result.values()}};
  };
}

TEST(Activation, GeluMatchesItsFormula) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("({}, {}) gap {}", c.rows, c.cols, c.gap));
    expect_matches(run_gelu(c),
                   [](const Named& in) {
                     Values y;
                     for (const double x : in.at("x")) y.push_back(gelu(x));
                     return Named{{"y", y}};
                   },
                   {{"x", random_values(c.rows * c.cols, 1, 2.0)}});
  }
}

TEST(Activation, SwigluMatchesItsFormula) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("({}, {}) gap {}", c.rows, c.cols, c.gap));
    expect_matches(run_swiglu(c),
                   [c](const Named& in) {
                     Values y;
                     for (int64_t r = 0; r < c.rows; ++r) {
                       const double* row = in.at("x").data() + r * 2 * c.cols;
                       for (int64_t i = 0; i < c.cols; ++i) y.push_back(silu(row[i]) * row[c.cols + i]);
                     }
                     return Named{{"y", y}};
                   },
                   {{"x", random_values(2 * c.rows * c.cols, 2, 2.0)}});
  }
}

TEST(Activation, GradientsMatchFiniteDifferences) {
  for (const Case& c : {Case{1, 1, 0}, Case{3, 17, 3}, Case{5, 64, 0}}) {
    expect_gradients(run_gelu(c), run_gelu_backward(c, Place::separate), {{"x", random_values(c.rows * c.cols, 3)}},
                     "y");
    expect_gradients(run_swiglu(c), run_swiglu_backward(c, false), {{"x", random_values(2 * c.rows * c.cols, 4)}}, "y");
  }
}

TEST(Activation, BackwardIsTheSameInPlaceInEveryDtypeAndOnAnyThreads) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("({}, {}) gap {}", c.rows, c.cols, c.gap));
    const auto in_double = [](const Runner& runner) {
      return [runner](const Named& in) { return run_on(1, runner, DType::f64, in); };
    };
    const Values dy = random_values(c.rows * c.cols, 6);
    const Named one{{"x", random_values(c.rows * c.cols, 5)}, {"dy", dy}};
    for (const Place place : {Place::over_dy, Place::over_x}) {
      expect_matches(run_gelu_backward(c, place), in_double(run_gelu_backward(c, Place::separate)), one);
    }
    const Named two{{"x", random_values(2 * c.rows * c.cols, 5)}, {"dy", dy}};
    expect_matches(run_swiglu_backward(c, true), in_double(run_swiglu_backward(c, false)), two);
  }
}

TEST(Activation, GeluBackwardAddsTheGradientOfTheBias) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("({}, {}) gap {}", c.rows, c.cols, c.gap));
    const Named in{{"x", random_values(c.rows * c.cols, 5)},
                   {"dy", random_values(c.rows * c.cols, 6)},
                   {"dbias0", random_values(c.cols, 7)}};
    const Reference reference = [c](const Named& inputs) {
      Named out = run_on(1, run_gelu_backward(c, Place::separate), DType::f64, inputs);
      out["dbias"] = inputs.at("dbias0");
      for (size_t i = 0; i < out["dx"].size(); ++i) out["dbias"][i % static_cast<size_t>(c.cols)] += out["dx"][i];
      return out;
    };
    expect_matches(run_gelu_backward_bias(c), reference, in);
  }
}

TEST(Activation, LargeInputsSaturateAndNanStays) {
  const double huge = 1e4;
  for (const Named& out : run_everywhere(run_gelu({1, 4, 0}), DType::f32, {{"x", {huge, -huge, NAN, INFINITY}}})) {
    EXPECT_EQ(out.at("y")[0], huge);
    EXPECT_EQ(out.at("y")[1], 0.0);
    EXPECT_TRUE(std::isnan(out.at("y")[2]));
    EXPECT_FALSE(std::isfinite(out.at("y")[3]));
  }
}

TEST(Activation, RefusesOtherShapes) {
  const Buffer x(DType::f32, 2, 8);
  const Buffer narrow(DType::f32, 2, 7);
  const Buffer other(DType::bf16, 2, 8);
  ThreadPool pool(1);
  Stream stream(pool);
  expect_refused([&] { gelu_forward(stream, {.x = x.tensor(), .y = narrow.tensor()}); });
  expect_refused([&] { gelu_forward(stream, {.x = x.tensor(), .y = other.tensor()}); });
  expect_refused([&] { swiglu_forward(stream, {.gate_up = x.tensor(), .y = narrow.tensor()}); });
}

}  // namespace
}  // namespace megalith::ops::testing
