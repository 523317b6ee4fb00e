#include "ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "ops/cross_entropy_cases.h"

namespace megalith::ops::testing {
namespace {

using Case = CrossEntropyCase;

const std::vector<Case> kCases = {{1, 1, 1},         {1, 5, 5},           {3, 17, 24, 3},
                                  {7, 100, 128},     {40, 5003, 5120, 1}, {2, 40000, 40001},
                                  {3, 50257, 50304}, {2, 128256, 128256}, {5, 1000, 1024, 8}};

std::string describe(const Case& c) {
  return fmt::format("({}, {} of {})", c.rows, c.vocabulary, c.padded);
}

Reference naive_cross_entropy(const Case& c, bool with_gradient) {
  return [c, with_gradient](const Named& in) {
    Named out{{"logits", in.at("logits")}};
    for (int64_t r = 0; r < c.rows; ++r) {
      double* logits = out["logits"].data() + r * c.padded;
      const double weight = in.at("weights")[static_cast<size_t>(r)];
      const auto target = static_cast<int64_t>(in.at("targets")[static_cast<size_t>(r)]);
      const double maximum = *std::max_element(logits, logits + c.vocabulary);
      double sum = 0.0;
      for (int64_t i = 0; i < c.vocabulary; ++i) sum += std::exp(logits[i] - maximum);
      out["losses"].push_back(weight == 0.0 ? 0.0 : weight * (maximum + std::log(sum) - logits[target]));
      if (!with_gradient) continue;
      for (int64_t i = 0; i < c.padded; ++i) {
        const double probability = i < c.vocabulary ? std::exp(logits[i] - maximum) / sum : 0.0;
        logits[i] = weight * kGradientScale * (probability - (i == target ? 1.0 : 0.0));
      }
    }
    return out;
  };
}

TEST(CrossEntropy, MatchesItsFormula) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    for (const bool with_gradient : {true, false}) {
      expect_matches(run_cross_entropy(c, with_gradient), naive_cross_entropy(c, with_gradient), inputs_of(c));
    }
  }
}

TEST(CrossEntropy, WeightsMayBeNegative) {
  const Case c{2, 9000, 9008};
  Named in = inputs_of(c);
  in["weights"] = {-0.5, 1.5};
  in["targets"] = {3, 8999};
  expect_matches(run_cross_entropy(c, true), naive_cross_entropy(c, true), in);
}

TEST(CrossEntropy, GradientsMatchFiniteDifferences) {
  for (const Case& c : {Case{1, 1, 1}, Case{4, 17, 24, 3}, Case{7, 100, 128}}) {
    SCOPED_TRACE(describe(c));
    expect_gradients(run_cross_entropy(c, false), seeded_backward(run_cross_entropy(c, true)), inputs_of(c), "losses");
  }
}

TEST(CrossEntropy, IgnoredRowsAndPaddingAreExactlyZero) {
  const Case c{3, 10, 16};
  Named in = inputs_of(c);
  in["logits"][static_cast<size_t>(c.padded)] = NAN;      // in the ignored row
  in["logits"][static_cast<size_t>(c.padded - 1)] = NAN;  // in the padding of the first
  for (const Named& out : run_everywhere(run_cross_entropy(c, true), DType::f32, in)) {
    EXPECT_EQ(out.at("losses")[1], 0.0);
    for (int64_t i = 0; i < c.padded; ++i) EXPECT_EQ(out.at("logits")[static_cast<size_t>(c.padded + i)], 0.0);
    for (int64_t i = c.vocabulary; i < c.padded; ++i) EXPECT_EQ(out.at("logits")[static_cast<size_t>(i)], 0.0);
    EXPECT_TRUE(std::isfinite(out.at("losses")[0]));
  }
}

TEST(CrossEntropy, NonFiniteLogitsAreSeen) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const Case c{1, 40, 40};
    Named in = inputs_of(c);
    in["logits"][17] = bad;
    in["targets"][0] = 3;
    for (const Named& out : run_everywhere(run_cross_entropy(c, true), DType::f32, in)) {
      EXPECT_FALSE(std::isfinite(out.at("losses")[0]));
      EXPECT_FALSE(std::isfinite(out.at("logits")[17]));
    }
  }
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  const Case c{1, 3, 3};
  const Named in{{"logits", {1000.0, 999.0, -1000.0}}, {"targets", {1}}, {"weights", {1.0}}};
  const Named exact = naive_cross_entropy(c, true)(in);
  for (const Named& out : run_everywhere(run_cross_entropy(c, true), DType::f32, in)) {
    EXPECT_LT(relative_error(out.at("losses"), exact.at("losses")), 1e-4);
  }
}

TEST(CrossEntropy, LogitsOfMinusInfinityCountAsNothing) {
  const Case c{1, 4, 4};
  Named in{{"logits", {-INFINITY, 1.0, 2.0, -INFINITY}}, {"targets", {1}}, {"weights", {1.0}}};
  for (const Named& out : run_everywhere(run_cross_entropy(c, true), DType::f32, in)) {
    EXPECT_NEAR(out.at("losses")[0], std::log(1.0 + std::exp(1.0)), 1e-6);
    EXPECT_EQ(out.at("logits")[0], 0.0);
  }
}

TEST(CrossEntropy, OnAGpuATargetBeyondTheVocabularyIsNan) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU is here";
  const Case c{2, 10, 16};
  Named in = inputs_of(c);
  in["targets"] = {10, -1};
  in["weights"] = {1.0, 1.0};
  const Named out = run_on_gpu(run_cross_entropy(c, true), DType::f32, in);
  EXPECT_TRUE(std::isnan(out.at("losses")[0]) && std::isnan(out.at("losses")[1]));
}

TEST(CrossEntropy, RefusesWhatBreaksTheContract) {
  const Case c{2, 10, 16};
  Named in = inputs_of(c);
  in["targets"] = {10, 0};
  expect_refused([&] { run_on(1, run_cross_entropy(c, true), DType::f32, in); });
  const Case wide{2, 17, 16};
  expect_refused([&] { run_on(1, run_cross_entropy(wide, true), DType::f32, inputs_of(c)); });
}

}  // namespace
}  // namespace megalith::ops::testing
