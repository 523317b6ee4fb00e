#include "ops/cases/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace megalith::ops::testing {

namespace {

// The last is more than a GPU works on at the same time.
const std::vector<int64_t> kSmall = {
    1, 7, 64, 1000, kUpdateTile, kUpdateTile + 3, 3 * kUpdateTile + 5, 14 * kUpdateTile + 9};
const std::vector<int64_t> kLarge = {1 << 22};

constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8;

// From `offset` on.
Buffer shifted_vector(DType dtype, const Values& values, int64_t offset) {
  Values shifted(values.size() + static_cast<size_t>(offset));
  std::copy(values.begin(), values.end(), shifted.begin() + offset);
  return vector_of(dtype, shifted);
}

UpdateTiles tiles_of(const Placed<UpdateTile>& placed, const std::vector<UpdateTile>& tiles, DType weights) {
  int64_t elements = 0;
  for (const UpdateTile& tile : tiles) elements += tile.elements;
  return {.tiles = placed.data(), .count = std::ssize(tiles), .elements = elements, .weights = weights};
}

Reference naive_gradient_norm(double max_norm) {
  return [max_norm](const Named& in) {
    double sum = 0.0;
    for (const auto& [name, values] : in) {
      sum = std::inner_product(values.begin(), values.end(), values.begin(), sum);
    }
    const double norm = std::sqrt(sum);
    return Named{{"squared_norm", {sum}},
                 {"norm", {norm}},
                 {"factor", {static_cast<float>(max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0)}},
                 {"first_non_finite", {-1.0}},
                 {"skip", {0.0}}};
  };
}

OpCase set_update_scalars_case() {
  return {.operation = "set_update_scalars",
          .shape = "3 scalars",
          .run =
              [](Stream& stream, DType, const Named& in) {
                const Placed<UpdateScalars> scalars(UpdateScalars{});
                const Values& given = in.at("given");
                set_update_scalars(stream, {.scalars = scalars.data(),
                                            .learning_rate = static_cast<float>(given[0]),
                                            .bias_correction1 = static_cast<float>(given[1]),
                                            .bias_correction2 = static_cast<float>(given[2])});
                const UpdateScalars after = scalars.value();
                return Named{{"given", {after.learning_rate, after.bias_correction1, after.bias_correction2}}};
              },
          .inputs =
              [] {
                return Named{{"given", {0.25, 0.5, 0.75}}};
              },
          .expected = [](const Named& in) { return in; },
          .is_exact = true};
}

}  // namespace

// The inputs are exact in bf16: remainders begin as zero.
Parameter::Parameter(DType dtype, const Named& in, int64_t offset)
    : weights(shifted_vector(dtype, in.at("w"), offset)),
      remainder(shifted_vector(DType::i16, Values(in.at("w").size()), offset)),
      gradient(shifted_vector(main_dtype(dtype), in.at("g"), offset)),
      exp_avg(shifted_vector(main_dtype(dtype), in.at("m"), offset)),
      exp_avg_sq(shifted_vector(main_dtype(dtype), in.at("v"), offset)),
      offset_(offset) {}

UpdateTensors Parameter::tensors(float weight_decay) const {
  return {.weights = part(weights),
          .remainder = weights.tensor().dtype == DType::bf16 ? part(remainder) : Tensor(),
          .gradient = part(gradient),
          .exp_avg = part(exp_avg),
          .exp_avg_sq = part(exp_avg_sq),
          .weight_decay = weight_decay};
}

Values Parameter::master() const {
  Values values = this->values(weights);
  if (weights.tensor().dtype != DType::bf16) return values;
  const Values low = this->values(remainder);
  for (size_t i = 0; i < values.size(); ++i) {
    bfloat16 high;
    high.bits = bfloat16(static_cast<float>(values[i])).bits;
    values[i] = join_float(high, static_cast<int16_t>(low[i]));
  }
  return values;
}

Values Parameter::values(const Buffer& buffer) const {
  const Values all = buffer.values();
  return {all.begin() + offset_, all.end()};
}

Tensor Parameter::part(const Buffer& buffer) const {
  const Tensor all = buffer.tensor().slice_cols(offset_, buffer.tensor().cols());
  return Tensor(all.data, all.dtype, Shape{all.cols()}, all.device);
}

Runner run_gradient_norm(const ClipCase& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    std::vector<Buffer> gradients;
    std::vector<UpdateTensors> tensors;
    for (const char* name : {"g0", "g1", "g2"}) {
      gradients.push_back(vector_of(main_dtype(dtype), in.at(name)));
      const Tensor gradient = gradients.back().vector();
      Tensor weights = gradient;
      weights.dtype = dtype;  // never looked at
      Tensor remainder = gradient;
      remainder.dtype = DType::i16;  // likewise
      tensors.push_back({weights, remainder, gradient, gradient, gradient});
    }
    const std::vector<UpdateTile> tiles = make_update_tiles(tensors);
    const Placed<UpdateTile> placed{std::span<const UpdateTile>(tiles)};
    const Buffer partials(DType::f64, 1, std::ssize(tiles));
    UpdateScalars before;
    before.skip = c.skip_before;
    const Placed<UpdateScalars> scalars(before);
    gradient_norm(stream,
                  {.tiles = tiles_of(placed, tiles, dtype), .partials = partials.vector(), .scalars = scalars.data()});
    clip_gradients(stream, {.scalars = scalars.data(), .max_norm = c.max_norm, .skip_stays = c.skip_stays});
    const UpdateScalars after = scalars.value();
    return Named{{"squared_norm", {after.squared_norm}},
                 {"norm", {after.gradient_norm}},
                 {"factor", {after.gradient_factor}},
                 {"first_non_finite", {static_cast<double>(after.first_non_finite)}},
                 {"skip", {static_cast<double>(after.skip)}}};
  };
}

Named gradients_of(int64_t size) {
  return {{"g0", random_values(size, 1)}, {"g1", random_values(3, 2)}, {"g2", random_values(100, 3)}};
}

UpdateScalars some_scalars(int32_t skip) {
  return {.learning_rate = 0.01F,
          .bias_correction1 = 0.271F,
          .bias_correction2 = 0.14F,
          .gradient_factor = 0.5F,
          .skip = skip};
}

Runner run_adamw(UpdateScalars given) {
  return [given](Stream& stream, DType dtype, const Named& in) {
    const Parameter decayed(dtype, in, 0);
    const Parameter plain(dtype, in, 1);
    const std::vector<UpdateTile> tiles =
        make_update_tiles(std::vector<UpdateTensors>{decayed.tensors(kDecay), plain.tensors(0.0F)});
    const Placed<UpdateTile> placed{std::span<const UpdateTile>(tiles)};
    const Placed<UpdateScalars> scalars(given);
    adamw(stream, {.tiles = tiles_of(placed, tiles, dtype),
                   .scalars = scalars.data(),
                   .beta1 = kBeta1,
                   .beta2 = kBeta2,
                   .epsilon = kEpsilon});
    Named out;
    for (const Parameter* p : {&decayed, &plain}) {
      const std::string suffix = p == &decayed ? "" : "_plain";
      out["w" + suffix] = p->values(p->weights);
      out["master" + suffix] = p->master();
      out["m" + suffix] = p->values(p->exp_avg);
      out["v" + suffix] = p->values(p->exp_avg_sq);
    }
    return out;
  };
}

Named naive_adamw(const Named& in) {
  const UpdateScalars s = some_scalars();
  Named out;
  for (const double decay : {static_cast<double>(kDecay), 0.0}) {
    const std::string suffix = decay > 0.0 ? "" : "_plain";
    for (size_t i = 0; i < in.at("w").size(); ++i) {
      const double g = s.gradient_factor * in.at("g")[i];
      const double m = kBeta1 * in.at("m")[i] + (1.0 - kBeta1) * g;
      const double v = kBeta2 * in.at("v")[i] + (1.0 - kBeta2) * g * g;
      const double w = in.at("w")[i];
      const double step = (m / s.bias_correction1) / (std::sqrt(v / s.bias_correction2) + kEpsilon) + decay * w;
      out["m" + suffix].push_back(m);
      out["v" + suffix].push_back(v);
      out["w" + suffix].push_back(w - s.learning_rate * step);
    }
    out["master" + suffix] = out["w" + suffix];
  }
  return out;
}

Named adam_inputs(int64_t size) {
  Named in{{"w", random_values(size, 1)}, {"g", random_values(size, 2)}, {"m", random_values(size, 3)}};
  for (const double value : random_values(size, 4)) in["v"].push_back(value * value);
  return in;
}

OpCases optimizer_cases(Size size) {
  OpCases cases;
  for (const int64_t elements : size == Size::small ? kSmall : kLarge) {
    const std::string shape = fmt::format("{} parameters", elements);
    for (const double max_norm : {0.0, 1.0, 1e6}) {
      if (elements > 3 * kUpdateTile && max_norm != 1.0) continue;
      cases.push_back({.operation = "gradient_norm",
                       .shape = fmt::format("{}, at most {}", shape, max_norm),
                       .run = run_gradient_norm({.max_norm = max_norm}),
                       .inputs = [elements] { return gradients_of(elements); },
                       .expected = naive_gradient_norm(max_norm)});
    }
    cases.push_back({.operation = "adamw",
                     .shape = shape,
                     .run = run_adamw(some_scalars()),
                     .inputs = [elements] { return adam_inputs(elements); },
                     .expected = naive_adamw});
  }
  if (size == Size::small) cases.push_back(set_update_scalars_case());
  return cases;
}

}  // namespace megalith::ops::testing
