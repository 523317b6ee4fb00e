#include "ops/dropout.h"

#include <algorithm>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

const DropoutKey kKey{.seed = 7, .site = 3, .step = 11};

struct Case {
  int64_t batch, length, cols;
  double probability;
  bool residual;
  int64_t gap = 0;
  bool placed = false;  // samples begin at positions of their own
  int64_t first_row = 0;
  int64_t some_rows = 0;  // 0: all

  int64_t rows() const { return some_rows == 0 ? batch * length : some_rows; }
};
const std::vector<Case> kCases = {{1, 1, 1, 0.5, false},
                                  {2, 3, 7, 0.1, true, 2},
                                  {2, 3, 7, 0.0, true, 2},
                                  {1, 5, 64, 0.0, false},
                                  {3, 7, 261, 0.3, true},
                                  {4, 33, 517, 0.1, true, 1},
                                  {2, 40, 1000, 0.9, false, 3},
                                  {1, 70, 300, 0.0, true},
                                  {2, 65, 2048, 0.1, true},
                                  {1, 40, 768, 0.2, true, 8},
                                  {3, 7, 261, 0.3, true, 1, true},
                                  {3, 9, 64, 0.2, true, 0, true, 7, 13},
                                  {2, 5, 1000, 0.5, false, 3, false, 9, 1}};

Values sample_ids(int64_t batch, int64_t first = 1000) {
  Values ids;
  for (int64_t i = 0; i < batch; ++i) ids.push_back(static_cast<double>(first + 13 * i));
  return ids;
}

enum class Place { separate, over_x, over_residual };

Runner run_dropout(const Case& c, Place place) {
  return [c, place](Stream& stream, DType dtype, const Named& in) {
    const int64_t rows = c.rows();
    const Buffer x(dtype, rows, c.cols, c.gap, in.at("x"));
    const Buffer residual(dtype, rows, c.cols, c.gap, in.at("residual"));
    const Buffer fresh(dtype, rows, c.cols, c.gap);
    const Buffer ids = vector_of(DType::i64, in.at("ids"));
    const Buffer first_positions = vector_of(DType::i32, in.at("first_positions"));
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
                                     .first_positions = c.placed ? first_positions.vector() : Tensor(),
                                     .length = c.length,
                                     .first_row = c.first_row}});
    return Named{{"y", y.values()}};
  };
}

Reference naive_dropout(const Case& c) {
  return [c](const Named& in) {
    Values y;
    for (int64_t row = 0; row < c.rows(); ++row) {
      const auto sample = static_cast<size_t>((c.first_row + row) / c.length);
      const auto id = static_cast<uint64_t>(in.at("ids")[sample]);
      const auto first = static_cast<int64_t>(c.placed ? in.at("first_positions")[sample] : 0.0);
      const auto position = static_cast<uint32_t>(first + (c.first_row + row) % c.length);
      for (int64_t i = 0; i < c.cols; ++i) {
        const auto words = philox(kKey.of_sample(id), {static_cast<uint32_t>(i / 4), position, 0, 0});
        const bool kept = words[static_cast<size_t>(i % 4)] >= dropout_threshold(c.probability);
        const auto at = static_cast<size_t>(row * c.cols + i);
        y.push_back((kept ? in.at("x")[at] / (1.0 - c.probability) : 0.0) + (c.residual ? in.at("residual")[at] : 0.0));
      }
    }
    return Named{{"y", y}};
  };
}

Named inputs_of(const Case& c) {
  const int64_t count = c.rows() * c.cols;
  Named in{{"x", random_values(count, 1)}, {"residual", random_values(count, 2)}, {"ids", sample_ids(c.batch)}};
  for (int64_t i = 0; i < c.batch; ++i) in["first_positions"].push_back(static_cast<double>(100 * (i + 1) + i));
  return in;
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
    Named one;
    for (const auto& [name, values] : in) one[name] = part(values);
    const Values y = run_on(1, run_dropout(alone, Place::separate), DType::f32, one).at("y");
    pieces.insert(pieces.end(), y.begin(), y.end());
  }
  EXPECT_EQ(all, pieces);
}

TEST(Dropout, APartOfTheRowsDrawsWhatTheWholeDrawsThere) {
  const Case whole{3, 17, 136, 0.3, true, 0, true};
  const Named in = inputs_of(whole);
  const std::vector<Named> wholes = run_everywhere(run_dropout(whole, Place::separate), DType::bf16, in);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 13}, {13, 26}, {26, 51}, {50, 51}}) {
    SCOPED_TRACE(fmt::format("rows [{}, {})", begin, end));
    Case some = whole;
    some.first_row = begin;
    some.some_rows = end - begin;
    const auto part = [&, first = begin, last = end](const Values& values) {
      return Values(values.begin() + first * whole.cols, values.begin() + last * whole.cols);
    };
    Named inputs = in;
    for (const char* name : {"x", "residual"}) inputs[name] = part(in.at(name));
    const std::vector<Named> parts = run_everywhere(run_dropout(some, Place::separate), DType::bf16, inputs);
    for (size_t device = 0; device < parts.size(); ++device) {
      EXPECT_EQ(parts[device].at("y"), part(wholes[device].at("y")));
    }
  }
}

TEST(Dropout, RefusesWhatBreaksTheContract) {
  ThreadPool pool(1);
  Stream stream(pool);
  const Buffer x(DType::f32, 6, 4), ids = vector_of(DType::i64, {1, 2});
  const uint64_t step = 11;
  const auto with = [&](double probability, int64_t length, int64_t first_row = 0) {
    return [&stream, &x, &ids, &step, probability, length, first_row] {
      const Dropout dropout{.probability = probability,
                            .step = &step,
                            .sample_ids = ids.vector(),
                            .length = length,
                            .first_row = first_row};
      dropout_add(stream, {.x = x.tensor(), .y = x.tensor(), .dropout = dropout});
    };
  };
  EXPECT_NO_THROW(with(0.5, 3)());
  expect_refused(with(1.0, 3));
  expect_refused(with(-0.1, 3));
  expect_refused(with(0.5, 2));
  EXPECT_NO_THROW(with(0.5, 4, 2)());
  expect_refused(with(0.5, 4, 3));
  expect_refused(with(0.5, 4, -1));
}

}  // namespace
}  // namespace megalith::ops::testing
