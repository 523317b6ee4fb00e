#include "ops/dropout.h"

#include <algorithm>
#include <cmath>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

const DropoutKey kKey{.seed = 7, .site = 3, .step = 11};

struct Case {
  int64_t batch, length, cols;
  double probability;
  bool residual;
  int64_t gap = 0;
};
const std::vector<Case> kCases = {{1, 1, 1, 0.5, false},        {2, 3, 7, 0.1, true, 2}, {2, 3, 7, 0.0, true, 2},
                                  {1, 5, 64, 0.0, false},       {3, 7, 261, 0.3, true},  {4, 33, 517, 0.1, true, 1},
                                  {2, 40, 1000, 0.9, false, 3}, {1, 70, 300, 0.0, true}, {2, 65, 2048, 0.1, true},
                                  {1, 40, 768, 0.2, true, 8}};

Values sample_ids(int64_t batch, int64_t first = 1000) {
  Values ids;
  for (int64_t i = 0; i < batch; ++i) ids.push_back(static_cast<double>(first + 13 * i));
  return ids;
}

enum class Place { separate, over_x, over_residual };

Runner run_dropout(const Case& c, Place place) {
  return [c, place](Stream& stream, DType dtype, const Named& in) {
    const int64_t rows = c.batch * c.length;
    const Buffer x(dtype, rows, c.cols, c.gap, in.at("x"));
    const Buffer residual(dtype, rows, c.cols, c.gap, in.at("residual"));
    const Buffer fresh(dtype, rows, c.cols, c.gap);
    const Buffer ids = vector_of(DType::i64, in.at("ids"));
    const Placed<uint64_t> step(kKey.step);
    const Buffer& y = place == Place::over_x ? x : place == Place::over_residual && c.residual ? residual : fresh;
    dropout_add(stream, {.x = x.tensor(),
                         .residual = c.residual ? residual.tensor() : Tensor(),
                         .y = y.tensor(),
                         .dropout = {.probability = c.probability,
                                     .seed = kKey.seed,
                                     .site = kKey.site,
                                     .step = step.data(),
                                     .sample_ids = ids.vector(),
                                     .length = c.length}});
    return Named{{"y", y.values()}};
  };
}

Reference naive_dropout(const Case& c) {
  return [c](const Named& in) {
    Values y;
    for (int64_t row = 0; row < c.batch * c.length; ++row) {
      const auto sample = static_cast<uint64_t>(in.at("ids")[static_cast<size_t>(row / c.length)]);
      for (int64_t i = 0; i < c.cols; ++i) {
        const auto words =
            philox(kKey.of_sample(sample), {static_cast<uint32_t>(i / 4), static_cast<uint32_t>(row % c.length), 0, 0});
        const bool kept = words[static_cast<size_t>(i % 4)] >= dropout_threshold(c.probability);
        const auto at = static_cast<size_t>(row * c.cols + i);
        y.push_back((kept ? in.at("x")[at] / (1.0 - c.probability) : 0.0) + (c.residual ? in.at("residual")[at] : 0.0));
      }
    }
    return Named{{"y", y}};
  };
}

Named inputs_of(const Case& c) {
  const int64_t count = c.batch * c.length * c.cols;
  return {{"x", random_values(count, 1)}, {"residual", random_values(count, 2)}, {"ids", sample_ids(c.batch)}};
}

TEST(Dropout, MatchesTheCounterContract) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("({} * {}, {}) p {}", c.batch, c.length, c.cols, c.probability));
    for (const Place place : {Place::separate, Place::over_x, Place::over_residual}) {
      expect_matches(run_dropout(c, place), naive_dropout(c), inputs_of(c));
    }
  }
}

TEST(Dropout, ItsGradientIsItself) {
  const Case c{2, 3, 37, 0.4, false};
  const Runner backward = [c](Stream& stream, DType dtype, const Named& in) {
    Named swapped = in;
    swapped["x"] = in.at("dy");
    return Named{{"dx", run_dropout(c, Place::separate)(stream, dtype, swapped).at("y")}};
  };
  expect_gradients(run_dropout(c, Place::separate), backward, inputs_of(c), "y");
}

TEST(Dropout, KeepsTheRightShare) {
  const Case c{4, 100, 1000, 0.1, false};
  Named in = inputs_of(c);
  in["x"].assign(in["x"].size(), 1.0);
  const std::vector<Named> results = run_everywhere(run_dropout(c, Place::separate), DType::f32, in);
  for (const Named& out : results) {
    const Values& y = out.at("y");
    const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0));
    EXPECT_NEAR(dropped / static_cast<double>(y.size()), 0.1, 0.003);  // 6 standard deviations
    EXPECT_EQ(y, results.front().at("y"));                             // the same decisions on every device
  }
}

TEST(Dropout, DoesNotDependOnTheMicroBatch) {
  const Case together{4, 9, 50, 0.3, true};
  const Named in = inputs_of(together);
  const Values all = run_on(2, run_dropout(together, Place::separate), DType::f32, in).at("y");
  Values pieces;
  for (size_t sample = 0; sample < 4; ++sample) {
    const auto part = [&](const Values& values) {
      const auto size = static_cast<std::ptrdiff_t>(values.size() / 4);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(sample) * size;
      return Values(begin, begin + size);
    };
    const Case alone{1, 9, 50, 0.3, true};
    const Named one{{"x", part(in.at("x"))}, {"residual", part(in.at("residual"))}, {"ids", part(in.at("ids"))}};
    const Values y = run_on(1, run_dropout(alone, Place::separate), DType::f32, one).at("y");
    pieces.insert(pieces.end(), y.begin(), y.end());
  }
  EXPECT_EQ(all, pieces);
}

TEST(Dropout, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 6, 4), ids = vector_of(DType::i64, {1, 2});
  const uint64_t step = 11;
  const auto with = [&](double probability, int64_t length) {
    return [&stream, &x, &ids, &step, probability, length] {
      const Dropout dropout{.probability = probability, .step = &step, .sample_ids = ids.vector(), .length = length};
      dropout_add(stream, {.x = x.tensor(), .y = x.tensor(), .dropout = dropout});
    };
  };
  EXPECT_NO_THROW(with(0.5, 3)());
  expect_refused(with(1.0, 3));
  expect_refused(with(-0.1, 3));
  expect_refused(with(0.5, 2));
}

}  // namespace
}  // namespace megalith::ops::testing
