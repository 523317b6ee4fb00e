#include "ops/vocabulary/cross_entropy.h"

#include <cmath>

#include "ops/cases/cross_entropy.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

using Case = CrossEntropyCase;

TEST(CrossEntropy, WeightsMayBeNegative) {
  const Case c{2, 9000, 9008};
  Named in = inputs_of(c);
  in["weights"] = {-0.5, 1.5};
  in["targets"] = {3, 8999};
  expect_matches(run_cross_entropy(c, true), naive_cross_entropy(c, true), in);
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
