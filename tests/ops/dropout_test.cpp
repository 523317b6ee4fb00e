#include "ops/dropout.h"

#include <algorithm>

#include "ops/cases/dropout.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

TEST(Dropout, KeepsTheRightShare) {
  const DropoutCase c{4, 100, 1000, 0.1, false};
  Named in = inputs_of(c);
  in["x"].assign(in["x"].size(), 1.0);
  const std::vector<Named> results = run_everywhere(run_dropout(c), DType::f32, in);
  for (const Named& out : results) {
    const Values& y = out.at("y");
    const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0));
    EXPECT_NEAR(dropped / static_cast<double>(y.size()), 0.1, 0.003);  // 6 standard deviations
    EXPECT_EQ(y, results.front().at("y"));                             // the same decisions on every device
  }
}

TEST(Dropout, DoesNotDependOnTheMicroBatch) {
  const DropoutCase together{4, 9, 50, 0.3, true};
  const Named in = inputs_of(together);
  const Values all = run_on(2, run_dropout(together), DType::f32, in).at("y");
  Values pieces;
  for (size_t sample = 0; sample < 4; ++sample) {
    const auto part = [&](const Values& values) {
      const auto size = static_cast<std::ptrdiff_t>(values.size() / 4);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(sample) * size;
      return Values(begin, begin + size);
    };
    const DropoutCase alone{1, 9, 50, 0.3, true};
    Named one;
    for (const auto& [name, values] : in) one[name] = part(values);
    const Values y = run_on(1, run_dropout(alone), DType::f32, one).at("y");
    pieces.insert(pieces.end(), y.begin(), y.end());
  }
  EXPECT_EQ(all, pieces);
}

TEST(Dropout, APartOfTheRowsDrawsWhatTheWholeDrawsThere) {
  const DropoutCase whole{3, 17, 136, 0.3, true, 0, true};
  const Named in = inputs_of(whole);
  const std::vector<Named> wholes = run_everywhere(run_dropout(whole), DType::bf16, in);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 13}, {13, 26}, {26, 51}, {50, 51}}) {
    SCOPED_TRACE(fmt::format("rows [{}, {})", begin, end));
    DropoutCase some = whole;
    some.first_row = begin;
    some.some_rows = end - begin;
    const auto part = [&, first = begin, last = end](const Values& values) {
      return Values(values.begin() + first * whole.cols, values.begin() + last * whole.cols);
    };
    Named inputs = in;
    for (const char* name : {"x", "residual"}) inputs[name] = part(in.at(name));
    const std::vector<Named> parts = run_everywhere(run_dropout(some), DType::bf16, inputs);
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
