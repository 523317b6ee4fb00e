#include <cmath>

#include "ops/cross_entropy_cases.h"

// Ranks that divide the columns, one after the other on one device, against cross_entropy of the whole.

namespace megalith::ops::testing {
namespace {

struct Case {
  int64_t rows, vocabulary, ranks, cols;  // cols: of a rank
  int64_t gap = 0;

  CrossEntropyCase whole() const { return {rows, vocabulary, ranks * cols, gap}; }
};
const std::vector<Case> kCases = {{1, 1, 1, 1},         {3, 17, 1, 24, 3},      {4, 5, 2, 3},      {7, 100, 2, 64},
                                  {5, 100, 3, 40, 1},   {6, 33, 4, 16},  // the last: padding alone
                                  {4, 8, 3, 8, 8},      {40, 5003, 4, 1280, 1}, {9, 1000, 4, 256}, {3, 50257, 3, 16768},
                                  {2, 128256, 4, 32064}};

std::string describe(const Case& c) {
  return fmt::format("({}, {} in {} x {})", c.rows, c.vocabulary, c.ranks, c.cols);
}

Runner run_parts(const Case& c, bool with_gradient) {
  return [c, with_gradient](Stream& stream, DType dtype, const Named& in) {
    const DType main = main_dtype(dtype);
    const Buffer logits(dtype, c.rows, c.whole().padded, c.gap, in.at("logits"));
    const Buffer targets = vector_of(DType::i32, in.at("targets"));
    const Buffer weights = vector_of(main, in.at("weights"));
    const Buffer statistics(main, 3 * c.ranks, c.rows, 1);
    const Placed<double> scale(kGradientScale);
    const auto part_of = [&](int64_t rank) { return logits.tensor().slice_cols(rank * c.cols, (rank + 1) * c.cols); };
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      cross_entropy_part(stream, {.logits = part_of(rank),
                                  .targets = targets.vector(),
                                  .statistics = statistics.tensor().slice_rows(3 * rank, 3 * rank + 3),
                                  .vocabulary = c.vocabulary,
                                  .first_column = rank * c.cols});
    }
    Named out;
    for (int64_t rank = 0; rank < c.ranks; ++rank) {
      const Buffer losses(main, 1, c.rows);
      cross_entropy_of_parts(stream, {.logits = part_of(rank),
                                      .targets = targets.vector(),
                                      .weights = weights.vector(),
                                      .losses = losses.vector(),
                                      .statistics = statistics.tensor(),
                                      .vocabulary = c.vocabulary,
                                      .first_column = rank * c.cols,
                                      .with_gradient = with_gradient,
                                      .gradient_scale = scale.data()});
      if (rank == 0) out["losses"] = losses.values();
      EXPECT_EQ(losses.values().size(), out["losses"].size());
      for (size_t r = 0; r < out["losses"].size(); ++r) {  // where NaN equals NaN
        const double here = losses.values()[r], first = out["losses"][r];
        EXPECT_TRUE(here == first || (std::isnan(here) && std::isnan(first))) << "rank " << rank << " row " << r;
      }
    }
    out["logits"] = logits.values();
    out["statistics"] = statistics.values();
    return out;
  };
}

TEST(CrossEntropyParts, TogetherAreTheWhole) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(describe(c));
    const Named in = inputs_of(c.whole());
    for (const bool with_gradient : {true, false}) {
      const Reference whole = [&](const Named& inputs) {
        return run_on(1, run_cross_entropy(c.whole(), with_gradient), DType::f64, inputs);
      };
      expect_matches(run_parts(c, with_gradient), whole, in);
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

TEST(CrossEntropyParts, GradientsMatchFiniteDifferences) {
  for (const Case& c : {Case{1, 1, 1, 1}, Case{4, 17, 3, 8, 3}, Case{7, 100, 2, 64}}) {
    SCOPED_TRACE(describe(c));
    expect_gradients(run_parts(c, false), seeded_backward(run_parts(c, true)), inputs_of(c.whole()), "losses");
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
  const Buffer statistics(DType::f32, 4, 2);
  expect_refused([&] {
    cross_entropy_part(
        stream,
        {.logits = logits.tensor(), .targets = targets.vector(), .statistics = statistics.tensor(), .vocabulary = 10});
  });
  expect_refused([&] {
    cross_entropy_of_parts(stream, {.logits = logits.tensor(),
                                    .targets = targets.vector(),
                                    .weights = weights.vector(),
                                    .losses = weights.vector(),
                                    .statistics = statistics.tensor(),
                                    .vocabulary = 10});
  });
}

}  // namespace
}  // namespace megalith::ops::testing
