#include <cmath>

#include "ops/cases/cross_entropy.h"
#include "ops/op_test.h"
#include "ops/vocabulary/cross_entropy.h"

// Ranks that divide the columns, one after the other on one device.

namespace megalith::ops::testing {
namespace {

using Case = CrossEntropyPartsCase;

TEST(CrossEntropyParts, TogetherAreTheWhole) {
  for (const Case& c : {Case{7, 100, 2, 64}, Case{40, 5003, 4, 1280, 1}, Case{3, 50257, 3, 16768}}) {
    const Named in = inputs_of(c.whole());
    for (const bool with_gradient : {true, false}) {
      const std::vector<Named> wholes = run_everywhere(run_cross_entropy(c.whole(), with_gradient), DType::f32, in);
      const std::vector<Named> parts = run_everywhere(run_parts(c, with_gradient), DType::f32, in);
      for (size_t device = 0; device < parts.size(); ++device) {
        for (const char* name : {"losses", "logits"}) {
          EXPECT_LT(relative_error(parts[device].at(name), wholes[device].at(name)), 1e-6) << name;
        }
      }
    }
  }
}

TEST(CrossEntropyParts, StatisticsAreWhatEachRankKnows) {
  const Case c{1, 3, 3, 2};
  const Named in{{"logits", {1.0, 2.0, 5.0, 9.0, 9.0, 9.0}}, {"targets", {2}}, {"weights", {1.0}}};
  for (const Named& out : run_everywhere(run_parts(c, true), DType::f32, in)) {
    const Values& statistics = out.at("statistics");
    EXPECT_EQ(statistics[0], 2.0);
    EXPECT_NEAR(statistics[1], 1.0 + std::exp(-1.0), 1e-6);
    EXPECT_EQ(statistics[2], 0.0);
    EXPECT_EQ(statistics[3], 5.0);
    EXPECT_NEAR(statistics[4], 1.0, 1e-6);
    EXPECT_EQ(Values(statistics.begin() + 5, statistics.end()), (Values{5.0, -INFINITY, 0.0, 0.0}));
  }
}

TEST(CrossEntropyParts, IgnoredRowsAndPaddingAreExactlyZero) {
  const Case c{3, 10, 2, 8};
  Named in = inputs_of(c.whole());
  const auto padded = static_cast<size_t>(c.whole().padded);
  in["logits"][padded] = NAN;      // in the ignored row
  in["logits"][padded - 1] = NAN;  // in the padding of the first
  for (const Named& out : run_everywhere(run_parts(c, true), DType::f32, in)) {
    EXPECT_EQ(out.at("losses")[1], 0.0);
    for (size_t i = 0; i < padded; ++i) EXPECT_EQ(out.at("logits")[padded + i], 0.0);
    for (size_t i = 10; i < padded; ++i) EXPECT_EQ(out.at("logits")[i], 0.0);
    EXPECT_TRUE(std::isfinite(out.at("losses")[0]));
  }
}

TEST(CrossEntropyParts, NonFiniteLogitsAreSeenByAll) {
  for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const Case c{1, 40, 2, 20};
    Named in = inputs_of(c.whole());
    in["logits"][17] = bad;
    in["targets"][0] = 33;
    for (const Named& out : run_everywhere(run_parts(c, true), DType::f32, in)) {
      EXPECT_FALSE(std::isfinite(out.at("losses")[0]));
      EXPECT_FALSE(std::isfinite(out.at("logits")[17]));
    }
  }
}

TEST(CrossEntropyParts, ARankOfMinusInfinityCountsAsNothing) {
  const Case c{1, 4, 2, 2};
  const Named in{{"logits", {-INFINITY, -INFINITY, 1.0, 2.0}}, {"targets", {2}}, {"weights", {1.0}}};
  for (const Named& out : run_everywhere(run_parts(c, true), DType::f32, in)) {
    EXPECT_NEAR(out.at("losses")[0], std::log(1.0 + std::exp(1.0)), 1e-6);
    EXPECT_EQ(out.at("logits")[0], 0.0);
  }
}

TEST(CrossEntropyParts, OnAGpuATargetBeyondTheVocabularyIsNan) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU is here";
  const Case c{2, 10, 2, 8};
  Named in = inputs_of(c.whole());
  in["targets"] = {10, -1};
  in["weights"] = {1.0, 1.0};
  const Named out = run_on_gpu(run_parts(c, true), DType::f32, in);
  EXPECT_TRUE(std::isnan(out.at("losses")[0]) && std::isnan(out.at("losses")[1]));
}

TEST(CrossEntropyParts, RefusesWhatBreaksTheContract) {
  const Case c{2, 10, 2, 8};
  Named in = inputs_of(c.whole());
  in["targets"] = {10, 0};
  expect_refused([&] { run_on(1, run_parts(c, true), DType::f32, in); });

  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer logits(DType::f32, 2, 8), targets = vector_of(DType::i32, {0, 1}), weights(DType::f32, 1, 2);
  const Buffer of_more_than_one(DType::f32, 4, 2);
  expect_refused([&] {
    cross_entropy_of_parts(stream, {.logits = logits.tensor(),
                                    .targets = targets.vector(),
                                    .weights = weights.vector(),
                                    .losses = weights.vector(),
                                    .statistics = of_more_than_one.tensor(),
                                    .vocabulary = 10});
  });
  const CrossEntropyPart part{.logits = logits.tensor(),
                              .targets = targets.vector(),
                              .statistics = of_more_than_one.tensor().slice_rows(0, 3),
                              .vocabulary = 10};
  EXPECT_NO_THROW(cross_entropy_part(stream, part));
  CrossEntropyPart without_vocabulary = part, before_the_first = part;
  without_vocabulary.vocabulary = 0;
  before_the_first.first_column = -1;
  expect_refused([&] { cross_entropy_part(stream, without_vocabulary); });
  expect_refused([&] { cross_entropy_part(stream, before_the_first); });
}

}  // namespace
}  // namespace megalith::ops::testing
