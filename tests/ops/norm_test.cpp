#include "ops/norm.h"

#include <cmath>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

struct Case {
  NormKind kind;
  int64_t rows, cols, gap;
};
const std::vector<Case> kCases = {
    {NormKind::layer_norm, 1, 3, 0},     {NormKind::rms_norm, 1, 1, 0},        {NormKind::layer_norm, 5, 64, 0},
    {NormKind::rms_norm, 7, 33, 2},      {NormKind::layer_norm, 65, 77, 3},    {NormKind::layer_norm, 200, 300, 0},
    {NormKind::rms_norm, 129, 520, 0},   {NormKind::layer_norm, 257, 2048, 0}, {NormKind::rms_norm, 70, 768, 8},
    {NormKind::layer_norm, 33, 4096, 0}, {NormKind::rms_norm, 9, 8192, 0},     {NormKind::layer_norm, 20, 12288, 0},
    {NormKind::layer_norm, 5, 16384, 0}, {NormKind::rms_norm, 3, 16384, 0},
};
constexpr double kEpsilon = 1e-5;

std::string describe(const Case& c) {
  return fmt::format("{} ({}, {}) gap {}", c.kind == NormKind::layer_norm ? "layer_norm" : "rms_norm", c.rows, c.cols,
                     c.gap);
}

bool is_layer(const Case& c) {
  return c.kind == NormKind::layer_norm;
}

Runner run_forward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer weight = vector_of(dtype, in.at("weight"));
    const Buffer bias = vector_of(dtype, in.at("bias"));
    const Buffer y(dtype, c.rows, c.cols, c.gap), mean(main_dtype(dtype), 1, c.rows),
        rstd(main_dtype(dtype), 1, c.rows);
    norm_forward(stream, {.kind = c.kind,
                          .x = x.tensor(),
                          .weight = weight.vector(),
                          .bias = is_layer(c) ? bias.vector() : Tensor(),
                          .y = y.tensor(),
                          .mean = is_layer(c) ? mean.vector() : Tensor(),
                          .rstd = rstd.vector(),
                          .epsilon = kEpsilon});
    Named out{{"y", y.values()}, {"rstd", rstd.values()}};
    if (is_layer(c)) out["mean"] = mean.values();
    return out;
  };
}

Reference naive_forward(const Case& c) {
  return [c](const Named& in) {
    Named out;
    for (int64_t r = 0; r < c.rows; ++r) {
      const double* x = in.at("x").data() + r * c.cols;
      double mean = 0.0;
      for (int64_t i = 0; i < c.cols && is_layer(c); ++i) mean += x[i] / static_cast<double>(c.cols);
      double variance = 0.0;
      for (int64_t i = 0; i < c.cols; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(c.cols);
      const double rstd = 1.0 / std::sqrt(variance + kEpsilon);
      for (int64_t i = 0; i < c.cols; ++i) {
        const auto channel = static_cast<size_t>(i);
        out["y"].push_back((x[i] - mean) * rstd * in.at("weight")[channel] +
                           (is_layer(c) ? in.at("bias")[channel] : 0.0));
      }
      out["rstd"].push_back(rstd);
      if (is_layer(c)) out["mean"].push_back(mean);
    }
    return out;
  };
}

enum class Residual { none, separate, is_dx, dy_is_dx };

// Runs the forward pass for its statistics. dweight and dbias begin at the values given as "dweight0" and "dbias0".
Runner run_backward(const Case& c, Residual residual) {
  return [c, residual](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const Named forward = run_forward(c)(stream, dtype, in);
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer weight = vector_of(dtype, in.at("weight"));
    const Buffer rstd = vector_of(main, forward.at("rstd"));
    const Buffer mean = vector_of(main, is_layer(c) ? forward.at("mean") : Values(1));
    const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
    const Buffer through(dtype, c.rows, c.cols, c.gap, in.at("residual"));
    const Buffer fresh(dtype, c.rows, c.cols, c.gap);
    const Buffer& dx = residual == Residual::is_dx ? through : residual == Residual::dy_is_dx ? dy : fresh;
    const Buffer dweight = vector_of(main, in.at("dweight0"));
    const Buffer dbias = vector_of(main, in.at("dbias0"));
    const bool summed = in.contains("dx_sums0");
    const Buffer dx_sums = vector_of(main, summed ? in.at("dx_sums0") : Values(1));
    const Buffer scratch(main, 1, norm_backward_scratch(c.rows, c.cols));
    norm_backward(stream, {.kind = c.kind,
                           .dy = dy.tensor(),
                           .x = x.tensor(),
                           .weight = weight.vector(),
                           .mean = is_layer(c) ? mean.vector() : Tensor(),
                           .rstd = rstd.vector(),
                           .residual_gradient = residual == Residual::none ? Tensor() : through.tensor(),
                           .dx = dx.tensor(),
                           .dweight = dweight.vector(),
                           .dbias = is_layer(c) ? dbias.vector() : Tensor(),
                           .dx_sums = summed ? dx_sums.vector() : Tensor(),
                           .scratch = scratch.tensor()});
    Named out{{"dx", dx.values()}, {"dweight", dweight.values()}};
    if (is_layer(c)) out["dbias"] = dbias.values();
    if (summed) out["dx_sums"] = dx_sums.values();
    return out;
  };
}

Named inputs_of(const Case& c, bool sums_begin_at_zero) {
  const auto start = [&](uint64_t key) {
    return sums_begin_at_zero ? Values(static_cast<size_t>(c.cols)) : random_values(c.cols, key);
  };
  return {{"x", random_values(c.rows * c.cols, 1, 1.5)},
          {"weight", random_values(c.cols, 2)},
          {"bias", random_values(c.cols, 3)},
          {"dy", random_values(c.rows * c.cols, 4)},
          {"residual", random_values(c.rows * c.cols, 5)},
          {"dweight0", start(6)},
          {"dbias0", start(7)}};
}

TEST(Norm, ForwardMatchesItsFormula) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    expect_matches(run_forward(c), naive_forward(c), inputs_of(c, true));
  }
}

TEST(Norm, GradientsMatchFiniteDifferences) {
  for (const Case& c : kCases) {
    if (c.rows * c.cols > 10000) continue;
    SCOPED_TRACE(describe(c));
    expect_gradients(run_forward(c), run_backward(c, Residual::none), inputs_of(c, true), "y");
  }
}

TEST(Norm, BackwardAddsResidualAndSumsInEveryDtype) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    Named in = inputs_of(c, false);
    in["dx_sums0"] = random_values(c.cols, 8);
    const auto expected = [&](const Named& inputs) {
      Named zeroed = inputs;
      zeroed.erase("dx_sums0");
      zeroed["dweight0"] = zeroed["dbias0"] = Values(static_cast<size_t>(c.cols));
      Named out = run_on(1, run_backward(c, Residual::none), DType::f64, zeroed);
      for (size_t i = 0; i < out["dx"].size(); ++i) out["dx"][i] += inputs.at("residual")[i];
      out["dx_sums"] = inputs.at("dx_sums0");
      for (size_t i = 0; i < out["dx"].size(); ++i) out["dx_sums"][i % static_cast<size_t>(c.cols)] += out["dx"][i];
      for (size_t i = 0; i < out["dweight"].size(); ++i) out["dweight"][i] += inputs.at("dweight0")[i];
      if (is_layer(c)) {
        for (size_t i = 0; i < out["dbias"].size(); ++i) out["dbias"][i] += inputs.at("dbias0")[i];
      }
      return out;
    };
    for (const Residual residual : {Residual::separate, Residual::is_dx, Residual::dy_is_dx}) {
      expect_matches(run_backward(c, residual), expected, in);
    }
  }
}

TEST(Norm, VarianceSurvivesALargeMean) {
  const Case c{NormKind::layer_norm, 1, 256, 0};
  Named in = inputs_of(c, true);
  for (size_t i = 0; i < in.at("x").size(); ++i) in.at("x")[i] = 4096.0 + static_cast<double>(i % 2);
  const Named exact = naive_forward(c)(in);
  for (const Named& out : run_everywhere(run_forward(c), DType::f32, in)) {
    EXPECT_LT(relative_error(out.at("rstd"), exact.at("rstd")), 1e-5);
  }
}

TEST(Norm, NanStaysInItsRow) {
  const Case c{NormKind::rms_norm, 2, 40, 0};
  Named in = inputs_of(c, true);
  in.at("x")[3] = NAN;
  for (const Named& out : run_everywhere(run_forward(c), DType::f32, in)) {
    EXPECT_TRUE(std::isnan(out.at("y")[0]) && std::isnan(out.at("y")[39]));
    EXPECT_FALSE(std::isnan(out.at("y")[40]));
  }
}

TEST(Norm, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 4, 8), weight(DType::f32, 1, 8), rstd(DType::f32, 1, 4), narrow(DType::f32, 1, 7);
  expect_refused([&] {
    norm_forward(stream, {.kind = NormKind::rms_norm,
                          .x = x.tensor(),
                          .weight = narrow.vector(),
                          .y = x.tensor(),
                          .rstd = rstd.vector()});
  });
  expect_refused([&] {  // a LayerNorm without a place for its means
    norm_forward(stream, {.x = x.tensor(), .weight = weight.vector(), .y = x.tensor(), .rstd = rstd.vector()});
  });
  expect_refused([&] {  // no scratch
    norm_backward(stream, {.kind = NormKind::rms_norm,
                           .dy = x.tensor(),
                           .x = x.tensor(),
                           .weight = weight.vector(),
                           .rstd = rstd.vector(),
                           .dx = x.tensor(),
                           .dweight = weight.vector()});
  });
}

}  // namespace
}  // namespace megalith::ops::testing
