#include "ops/optimizer.h"

#include <cmath>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

const std::vector<int64_t> kSizes = {1, 7, 64, 1000, kSquareTile, kSquareTile + 3, 3 * kSquareTile + 5};

Runner run_sum_of_squares() {
  return [](Stream& stream, DType dtype, const Named& in) {
    const Buffer x = vector_of(dtype, in.at("x"));
    const Buffer partials(DType::f64, 1, ceil_div(x.tensor().elements(), kSquareTile));
    sum_of_squares(stream, {.x = x.tensor(), .partials = partials.vector()});
    return Named{{"partials", partials.values()}};
  };
}

TEST(SumOfSquares, SumsEachTile) {
  for (const int64_t size : kSizes) {
    SCOPED_TRACE(size);
    expect_matches(run_sum_of_squares(),
                   [](const Named& in) {
                     Values partials;
                     for (size_t i = 0; i < in.at("x").size(); ++i) {
                       if (i % kSquareTile == 0) partials.push_back(0.0);
                       partials.back() += in.at("x")[i] * in.at("x")[i];
                     }
                     return Named{{"partials", partials}};
                   },
                   {{"x", random_values(size, 1)}});
  }
}

TEST(SumOfSquares, TellsOfWhatIsNotFinite) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    Values x = random_values(1000, 1);
    x[777] = bad;
    EXPECT_FALSE(std::isfinite(run_on(1, run_sum_of_squares(), DType::f32, {{"x", x}}).at("partials")[0]));
  }
}

UpdateScalars some_scalars(int32_t skip = 0) {
  return {.learning_rate = 0.01F,
          .bias_correction1 = 0.271F,
          .bias_correction2 = 0.14F,
          .gradient_factor = 0.5F,
          .skip = skip};
}

constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8, kDecay = 0.1;

Runner run_adamw(UpdateScalars scalars, bool own_master) {
  return [scalars, own_master](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const Buffer weights = vector_of(dtype, in.at("w"));
    const Buffer copy = vector_of(main, in.at("w"));
    const Buffer& master = own_master || dtype == DType::bf16 ? copy : weights;
    const Buffer gradient = vector_of(main, in.at("g"));
    const Buffer m = vector_of(main, in.at("m"));
    const Buffer v = vector_of(main, in.at("v"));
    adamw(stream, {.weights = weights.vector(),
                   .master = master.vector(),
                   .gradient = gradient.vector(),
                   .exp_avg = m.vector(),
                   .exp_avg_sq = v.vector(),
                   .scalars = &scalars,
                   .beta1 = kBeta1,
                   .beta2 = kBeta2,
                   .epsilon = kEpsilon,
                   .weight_decay = kDecay});
    return Named{{"w", weights.values()}, {"master", master.values()}, {"m", m.values()}, {"v", v.values()}};
  };
}

Named naive_adamw(const Named& in) {
  const UpdateScalars s = some_scalars();
  Named out;
  for (size_t i = 0; i < in.at("w").size(); ++i) {
    const double g = s.gradient_factor * in.at("g")[i];
    const double m = kBeta1 * in.at("m")[i] + (1.0 - kBeta1) * g;
    const double v = kBeta2 * in.at("v")[i] + (1.0 - kBeta2) * g * g;
    const double w = in.at("w")[i];
    const double step = (m / s.bias_correction1) / (std::sqrt(v / s.bias_correction2) + kEpsilon) + kDecay * w;
    out["m"].push_back(m);
    out["v"].push_back(v);
    out["w"].push_back(w - s.learning_rate * step);
  }
  out["master"] = out["w"];
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
    for (const bool own_master : {false, true}) {
      expect_matches(run_adamw(some_scalars(), own_master), naive_adamw, adam_inputs(size));
    }
  }
}

TEST(AdamW, Bf16WeightsKeepAnFp32Master) {
  const Named in = adam_inputs(100);
  const Named out = run_on(1, run_adamw(some_scalars(), true), DType::bf16, in);
  EXPECT_LT(relative_error(out.at("master"), naive_adamw(in).at("w")), 1e-6);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(out.at("w")[i], static_cast<float>(bfloat16(static_cast<float>(out.at("master")[i]))));
  }
}

TEST(AdamW, SkipLeavesEverythingUntouched) {
  const Named in = adam_inputs(1000);
  const Named out = run_on(1, run_adamw(some_scalars(1), true), DType::f64, in);
  for (const char* name : {"w", "m", "v"}) EXPECT_EQ(out.at(name), in.at(name)) << name;
  EXPECT_EQ(out.at("master"), in.at("w"));
}

TEST(AdamW, ZeroGradientAndMomentsOnlyDecay) {
  Named in = adam_inputs(9);
  in["g"] = in["m"] = in["v"] = Values(9);
  const Named out = run_on(1, run_adamw(some_scalars(), false), DType::f32, in);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(out.at("w")[i], in.at("w")[i] * (1.0 - 0.01 * kDecay), 1e-6);
}

TEST(Optimizer, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const UpdateScalars scalars;
  const Buffer narrow(DType::bf16, 1, 8), main(DType::f32, 1, 8), shorter(DType::f32, 1, 7);
  const auto with = [&](const Buffer& master, const Buffer& gradient, const UpdateScalars* given) {
    return [&stream, &narrow, &main, &master, &gradient, given] {
      adamw(stream, {.weights = narrow.vector(),
                     .master = master.vector(),
                     .gradient = gradient.vector(),
                     .exp_avg = main.vector(),
                     .exp_avg_sq = main.vector(),
                     .scalars = given});
    };
  };
  expect_refused(with(narrow, main, &scalars));
  expect_refused(with(main, shorter, &scalars));
  expect_refused(with(main, main, nullptr));
  expect_refused([&] { sum_of_squares(stream, {.x = main.tensor(), .partials = main.tensor()}); });
}

}  // namespace
}  // namespace megalith::ops::testing
