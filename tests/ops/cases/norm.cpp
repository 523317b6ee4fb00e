#include "ops/cases/norm.h"

#include <cmath>

namespace megalith::ops::testing {

namespace {

const std::vector<NormCase> kSmall = {
    {NormKind::layer_norm, 1, 3, 0},     {NormKind::rms_norm, 1, 1, 0},        {NormKind::layer_norm, 5, 64, 0},
    {NormKind::rms_norm, 7, 33, 2},      {NormKind::layer_norm, 65, 77, 3},    {NormKind::layer_norm, 200, 300, 0},
    {NormKind::rms_norm, 129, 520, 0},   {NormKind::layer_norm, 257, 2048, 0}, {NormKind::rms_norm, 70, 768, 8},
    {NormKind::layer_norm, 33, 4096, 0}, {NormKind::rms_norm, 9, 8192, 0},     {NormKind::layer_norm, 20, 12288, 0},
    {NormKind::layer_norm, 5, 16384, 0}, {NormKind::rms_norm, 3, 16384, 0},
};
const std::vector<NormCase> kLarge = {{NormKind::layer_norm, 2048, 768, 0}, {NormKind::rms_norm, 2048, 768, 0}};

constexpr double kEpsilon = 1e-5;

std::string describe(const NormCase& c) {
  return fmt::format("{} ({}, {}) gap {}", c.is_layer() ? "layer_norm" : "rms_norm", c.rows, c.cols, c.gap);
}

enum class Residual { none, separate, is_dx, dy_is_dx };

// Runs the forward pass for its statistics. What is summed up begins at "dweight0", "dbias0" and "dx_sums0", or at
// zero; without the last, dx is not summed up.
Runner run_backward(const NormCase& c, Residual residual) {
  return [c, residual](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const auto start = [&](const char* name) {
      return vector_of(main, in.contains(name) ? in.at(name) : Values(static_cast<size_t>(c.cols)));
    };
    const Named forward = run_forward(c)(stream, dtype, in);
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer dy(dtype, c.rows, c.cols, c.gap, in.at("dy"));
    const Buffer weight = vector_of(dtype, in.at("weight"));
    const Buffer rstd = vector_of(main, forward.at("rstd"));
    const Buffer dweight = start("dweight0");
    const Buffer scratch(main, 1, norm_backward_scratch(c.rows, c.cols));
    NormBackward args{.kind = c.kind,
                      .dy = dy.tensor(),
                      .x = x.tensor(),
                      .weight = weight.vector(),
                      .rstd = rstd.vector(),
                      .dweight = dweight.vector(),
                      .scratch = scratch.tensor()};
    std::map<std::string, Buffer> held;  // what only some cases have
    const auto hold = [&](const std::string& name, const Buffer& buffer) {
      return held.emplace(name, buffer).first->second;
    };
    if (c.is_layer()) {
      args.mean = hold("mean", vector_of(main, forward.at("mean"))).vector();
      args.dbias = hold("dbias", start("dbias0")).vector();
    }
    if (residual != Residual::none) {
      args.residual_gradient = hold("residual", Buffer(dtype, c.rows, c.cols, c.gap, in.at("residual"))).tensor();
    }
    if (in.contains("dx_sums0")) args.dx_sums = hold("dx_sums", start("dx_sums0")).vector();
    const Buffer dx = residual == Residual::is_dx      ? held.at("residual")
                      : residual == Residual::dy_is_dx ? dy
                                                       : Buffer(dtype, c.rows, c.cols, c.gap);
    args.dx = dx.tensor();
    norm_backward(stream, args);
    Named out{{"dx", dx.values()}, {"dweight", dweight.values()}};
    for (const char* name : {"dbias", "dx_sums"}) {
      if (held.contains(name)) out[name] = held.at(name).values();
    }
    return out;
  };
}

Named inputs_with_sums(const NormCase& c) {
  Named in = inputs_of(c);
  in["dweight0"] = random_values(c.cols, 6);
  in["dbias0"] = random_values(c.cols, 7);
  in["dx_sums0"] = random_values(c.cols, 8);
  return in;
}

// What the plain gradient gives, with the residual and what sums begin at added to it.
Reference naive_backward(const NormCase& c) {
  return [c](const Named& in) {
    Named plain = in;
    for (const char* name : {"dweight0", "dbias0", "dx_sums0"}) plain.erase(name);
    Named out = run_in_double(run_backward(c, Residual::none), plain);
    for (size_t i = 0; i < out["dx"].size(); ++i) out["dx"][i] += in.at("residual")[i];
    out["dx_sums"] = in.at("dx_sums0");
    for (size_t i = 0; i < out["dx"].size(); ++i) out["dx_sums"][i % static_cast<size_t>(c.cols)] += out["dx"][i];
    for (size_t i = 0; i < out["dweight"].size(); ++i) out["dweight"][i] += in.at("dweight0")[i];
    if (c.is_layer()) {
      for (size_t i = 0; i < out["dbias"].size(); ++i) out["dbias"][i] += in.at("dbias0")[i];
    }
    return out;
  };
}

}  // namespace

Runner run_forward(const NormCase& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const Buffer x(dtype, c.rows, c.cols, c.gap, in.at("x"));
    const Buffer weight = vector_of(dtype, in.at("weight"));
    const Buffer y(dtype, c.rows, c.cols, c.gap), rstd(main, 1, c.rows);
    NormForward args{.kind = c.kind,
                     .x = x.tensor(),
                     .weight = weight.vector(),
                     .y = y.tensor(),
                     .rstd = rstd.vector(),
                     .epsilon = kEpsilon};
    if (!c.is_layer()) {
      norm_forward(stream, args);
      return Named{{"y", y.values()}, {"rstd", rstd.values()}};
    }
    const Buffer bias = vector_of(dtype, in.at("bias")), mean(main, 1, c.rows);
    args.bias = bias.vector();
    args.mean = mean.vector();
    norm_forward(stream, args);
    return Named{{"y", y.values()}, {"rstd", rstd.values()}, {"mean", mean.values()}};
  };
}

Reference naive_forward(const NormCase& c) {
  return [c](const Named& in) {
    Named out;
    for (int64_t r = 0; r < c.rows; ++r) {
      const double* x = in.at("x").data() + r * c.cols;
      double mean = 0.0;
      for (int64_t i = 0; i < c.cols && c.is_layer(); ++i) mean += x[i] / static_cast<double>(c.cols);
      double variance = 0.0;
      for (int64_t i = 0; i < c.cols; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(c.cols);
      const double rstd = 1.0 / std::sqrt(variance + kEpsilon);
      for (int64_t i = 0; i < c.cols; ++i) {
        const auto channel = static_cast<size_t>(i);
        out["y"].push_back((x[i] - mean) * rstd * in.at("weight")[channel] +
                           (c.is_layer() ? in.at("bias")[channel] : 0.0));
      }
      out["rstd"].push_back(rstd);
      if (c.is_layer()) out["mean"].push_back(mean);
    }
    return out;
  };
}

Named inputs_of(const NormCase& c) {
  return {{"x", random_values(c.rows * c.cols, 1, 1.5)},
          {"weight", random_values(c.cols, 2)},
          {"bias", random_values(c.cols, 3)},
          {"dy", random_values(c.rows * c.cols, 4)},
          {"residual", random_values(c.rows * c.cols, 5)}};
}

OpCases norm_cases(Size size) {
  OpCases cases;
  for (const NormCase& c : size == Size::small ? kSmall : kLarge) {
    const bool is_differentiated = c.rows * c.cols <= 10000;
    cases.push_back({.operation = "norm_forward",
                     .shape = describe(c),
                     .run = run_forward(c),
                     .inputs = [c] { return inputs_of(c); },
                     .expected = naive_forward(c),
                     .backward = is_differentiated ? run_backward(c, Residual::none) : Runner(),
                     .output = "y"});
    for (const Residual residual : {Residual::separate, Residual::is_dx, Residual::dy_is_dx}) {
      constexpr const char* kNames[] = {"", "", " over the residual", " over dy"};
      if (size == Size::large && residual != Residual::separate) continue;
      cases.push_back({.operation = "norm_backward",
                       .shape = describe(c) + kNames[static_cast<int>(residual)],
                       .run = run_backward(c, residual),
                       .inputs = [c] { return inputs_with_sums(c); },
                       .expected = naive_backward(c)});
    }
  }
  return cases;
}

}  // namespace megalith::ops::testing
