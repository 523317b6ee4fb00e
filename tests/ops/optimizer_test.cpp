#include "ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

const std::vector<int64_t> kSizes = {1, 7, 64, 1000, kUpdateTile, kUpdateTile + 3, 3 * kUpdateTile + 5};

// The state of one parameter. It begins `offset` elements into its memory, so that not every parameter is aligned.
struct Parameter {
  Buffer weights, remainder, gradient, exp_avg, exp_avg_sq;

  static Buffer make(DType dtype, const Values& values, int64_t offset) {
    Values shifted(values.size() + static_cast<size_t>(offset));
    std::copy(values.begin(), values.end(), shifted.begin() + offset);
    return vector_of(dtype, shifted);
  }
  // The inputs are exact in bf16: remainders begin as zero.
  Parameter(DType dtype, const Named& in, int64_t offset)
      : weights(make(dtype, in.at("w"), offset)),
        remainder(make(DType::i16, Values(in.at("w").size()), offset)),
        gradient(make(main_dtype(dtype), in.at("g"), offset)),
        exp_avg(make(main_dtype(dtype), in.at("m"), offset)),
        exp_avg_sq(make(main_dtype(dtype), in.at("v"), offset)),
        offset_(offset) {}

  UpdateTensors tensors(float weight_decay) const {
    return {.weights = part(weights),
            .remainder = weights.tensor().dtype == DType::bf16 ? part(remainder) : Tensor(),
            .gradient = part(gradient),
            .exp_avg = part(exp_avg),
            .exp_avg_sq = part(exp_avg_sq),
            .weight_decay = weight_decay};
  }
  Values master() const {
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
  Values values(const Buffer& buffer) const {
    const Values all = buffer.values();
    return {all.begin() + offset_, all.end()};
  }

 private:
  Tensor part(const Buffer& buffer) const {
    const Tensor all = buffer.tensor().slice_cols(offset_, buffer.tensor().cols());
    return Tensor(all.data, all.dtype, Shape{all.cols()}, all.device);
  }
  int64_t offset_;
};

// ---- the norm of gradients ---------------------------------------------------------------------------------------

// Gradients of three parameters: "g0", "g1", "g2".
Runner run_gradient_norm(double max_norm = 0.0, bool skip_stays = false, int32_t skip_before = 0) {
  return [=](Stream& stream, DType dtype, const Named& in) {
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
    const auto count = static_cast<int64_t>(tiles.size());
    const Buffer partials(DType::f64, 1, count);
    UpdateScalars before;
    before.skip = skip_before;
    const Placed<UpdateScalars> scalars(before);
    gradient_norm(stream, {.tiles = {.tiles = placed.data(), .count = count, .weights = dtype},
                           .partials = partials.vector(),
                           .scalars = scalars.data()});
    clip_gradients(stream, {.scalars = scalars.data(), .max_norm = max_norm, .skip_stays = skip_stays});
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

TEST(GradientNorm, IsThatOfAllGradients) {
  for (const int64_t size : kSizes) {
    SCOPED_TRACE(size);
    for (const double max_norm : {0.0, 1.0, 1e6}) {
      const Reference reference = [max_norm](const Named& in) {
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
      expect_matches(run_gradient_norm(max_norm), reference, gradients_of(size));
    }
  }
}

TEST(GradientNorm, NamesTheFirstParameterThatIsNotFinite) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    Named in = gradients_of(kUpdateTile + 3);
    in["g1"][2] = bad;
    in["g2"][50] = bad;
    for (const Named& out : run_everywhere(run_gradient_norm(1.0), DType::f32, in)) {
      EXPECT_EQ(out.at("first_non_finite")[0], 1.0);
      EXPECT_EQ(out.at("skip")[0], 1.0);
      EXPECT_FALSE(std::isfinite(out.at("norm")[0]));
    }
  }
}

TEST(GradientNorm, LargeGradientsDoNotOverflow) {
  Named in = gradients_of(10);
  in["g0"][3] = 1e30;
  for (const Named& out : run_everywhere(run_gradient_norm(1.0), DType::f32, in)) {
    EXPECT_NEAR(out.at("norm")[0], 1e30, 1e23);
    EXPECT_EQ(out.at("skip")[0], 0.0);
  }
}

TEST(ClipGradients, ASkipStaysWhereItShould) {
  const Named in = gradients_of(10);
  for (const Named& out : run_everywhere(run_gradient_norm(1.0, true, 1), DType::f32, in)) {
    EXPECT_EQ(out.at("skip")[0], 1.0);
  }
  for (const Named& out : run_everywhere(run_gradient_norm(1.0, false, 1), DType::f32, in)) {
    EXPECT_EQ(out.at("skip")[0], 0.0);
  }
}

// ---- AdamW -------------------------------------------------------------------------------------------------------

UpdateScalars some_scalars(int32_t skip = 0) {
  return {.learning_rate = 0.01F,
          .bias_correction1 = 0.271F,
          .bias_correction2 = 0.14F,
          .gradient_factor = 0.5F,
          .skip = skip};
}

constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8;
constexpr float kDecay = 0.125F;

// The same parameter twice: aligned and with decay, then not aligned and without.
Runner run_adamw(UpdateScalars given) {
  return [given](Stream& stream, DType dtype, const Named& in) {
    const Parameter decayed(dtype, in, 0);
    const Parameter plain(dtype, in, 1);
    const std::vector<UpdateTile> tiles =
        make_update_tiles(std::vector<UpdateTensors>{decayed.tensors(kDecay), plain.tensors(0.0F)});
    const Placed<UpdateTile> placed{std::span<const UpdateTile>(tiles)};
    const Placed<UpdateScalars> scalars(given);
    adamw(stream, {.tiles = {.tiles = placed.data(), .count = static_cast<int64_t>(tiles.size()), .weights = dtype},
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

TEST(AdamW, MatchesItsFormula) {
  for (const int64_t size : kSizes) {
    SCOPED_TRACE(size);
    expect_matches(run_adamw(some_scalars()), naive_adamw, adam_inputs(size));
  }
}

// More than a GPU works on at the same time.
TEST(AdamW, ManyTilesMatchItsFormula) {
  expect_matches(run_adamw(some_scalars()), naive_adamw, adam_inputs(14 * kUpdateTile + 9));
}

TEST(AdamW, Bf16WeightsKeepAnFp32Master) {
  const Named in = adam_inputs(100);
  for (const Named& out : run_everywhere(run_adamw(some_scalars()), DType::bf16, in)) {
    EXPECT_LT(relative_error(out.at("master"), naive_adamw(in).at("w")), 1e-6);
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(out.at("w")[i], static_cast<float>(bfloat16(static_cast<float>(out.at("master")[i]))));
    }
  }
}

TEST(AdamW, SkipLeavesEverythingUntouched) {
  const Named in = adam_inputs(1000);
  for (const Named& out : run_everywhere(run_adamw(some_scalars(1)), DType::f32, in)) {
    for (const char* name : {"w", "m"}) EXPECT_EQ(out.at(name), in.at(name)) << name;
    EXPECT_EQ(out.at("master"), in.at("w"));
  }
}

TEST(AdamW, ZeroGradientAndMomentsOnlyDecay) {
  Named in = adam_inputs(9);
  in["g"] = in["m"] = in["v"] = Values(9);
  for (const Named& out : run_everywhere(run_adamw(some_scalars()), DType::f32, in)) {
    for (size_t i = 0; i < 9; ++i) {
      EXPECT_NEAR(out.at("w")[i], in.at("w")[i] * (1.0 - 0.01 * static_cast<double>(kDecay)), 1e-6);
      EXPECT_EQ(out.at("w_plain")[i], in.at("w")[i]);
    }
  }
}

TEST(UpdateTiles, CutEveryParameterOnItsOwn) {
  const Named in = adam_inputs(2 * kUpdateTile + 5);
  const Parameter large(DType::f32, in, 0), small(DType::f32, adam_inputs(3), 0);
  const std::vector<UpdateTile> tiles =
      make_update_tiles(std::vector<UpdateTensors>{large.tensors(kDecay), small.tensors(0.0F)});
  ASSERT_EQ(tiles.size(), 4U);
  EXPECT_EQ(tiles[2].elements, 5);
  EXPECT_EQ(tiles[2].parameter, 0);
  EXPECT_EQ(tiles[3].elements, 3);
  EXPECT_EQ(tiles[3].parameter, 1);
  EXPECT_EQ(tiles[1].gradient, large.gradient.tensor().as<float>() + kUpdateTile);
}

TEST(Optimizer, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer narrow(DType::bf16, 1, 8), low(DType::i16, 1, 8), main(DType::f32, 1, 8), shorter(DType::f32, 1, 7);
  const auto with = [&](const Buffer& remainder, const Buffer& gradient) {
    return [&narrow, &main, &remainder, &gradient] {
      make_update_tiles(std::vector<UpdateTensors>{
          {narrow.vector(), remainder.vector(), gradient.vector(), main.vector(), main.vector()}});
    };
  };
  EXPECT_NO_THROW(with(low, main)());
  expect_refused(with(narrow, main));
  expect_refused(with(low, shorter));
  expect_refused([&] { adamw(stream, {}); });
  UpdateScalars scalars;
  expect_refused([&] { gradient_norm(stream, {.tiles = {}, .partials = main.vector(), .scalars = &scalars}); });
}

}  // namespace
}  // namespace megalith::ops::testing
