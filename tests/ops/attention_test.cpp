#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "ops/cases/attention.h"
#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

using Case = AttentionCase;

TEST(Attention, SurvivesLargeScores) {
  const Case c{1, 20, 20, 1, 1, 4};
  Named in = inputs_of(c);
  for (double& value : in["q"]) value *= 16.0;
  for (double& value : in["k"]) value *= 8.0;
  EXPECT_LT(relative_error(run_on(1, run_forward(c), DType::f32, in).at("out"), naive_forward(c)(in).at("out")), 1e-4);
}

// Other kernels compute attention with dropout: what it takes says nothing of attention without.
TEST(Attention, ShapesTellKernelsApart) {
  std::vector<float> values(64);
  const Tensor rows(values.data(), DType::f32, {4, 16});
  AttentionForward args{.q = rows, .k = rows, .v = rows, .out = rows, .batch = 1, .heads = 2, .kv_heads = 2};
  args.log_sum_exp = Tensor(values.data(), DType::f32, {2, 4});
  EXPECT_EQ(cost_of(args).shape, "f32 1 x 4 queries, 4 keys, 2/2 heads of 8");
  args.dropout.probability = 0.1;
  EXPECT_EQ(cost_of(args).shape, "f32 1 x 4 queries, 4 keys, 2/2 heads of 8, dropout");
}

TEST(Attention, NanReachesWhatSeesIt) {
  const Case c{1, 300, 300, 1, 1, 8};
  Named in = inputs_of(c);
  in["k"][8 * 10] = NAN;
  const Values out = run_on(1, run_forward(c), DType::f32, in).at("out");
  EXPECT_FALSE(std::isnan(out[8 * 9]));
  EXPECT_TRUE(std::isnan(out[8 * 10]));
  EXPECT_TRUE(std::isnan(out[8 * 299]));
}

TEST(Attention, DropoutDoesNotDependOnTheMicroBatch) {
  const Case together{4, 33, 33, 2, 1, 8, 0.3};
  const Case alone{1, 33, 33, 2, 1, 8, 0.3};
  Named in = inputs_of(together);
  const Named all = run_on(2, run_backward(together), DType::f32, in);
  Named pieces;
  for (size_t sample = 0; sample < 4; ++sample) {
    Named one;
    for (const auto& [name, values] : in) {
      const auto size = static_cast<std::ptrdiff_t>(values.size() / 4);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(sample) * size;
      one[name] = Values(begin, begin + size);
    }
    for (const auto& [name, values] : run_on(1, run_backward(alone), DType::f32, one)) {
      pieces[name].insert(pieces[name].end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(all, pieces);
}

TEST(Attention, KeysThatNoQuerySeesHaveNoGradient) {
  const Case c{.batch = 1, .queries = 5, .keys = 40, .heads = 1, .kv_heads = 1, .dim = 8, .unseen = 25};
  Named in = inputs_of(c);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Named& out : run_everywhere(run_backward(c), dtype, in)) {
      for (const char* name : {"dk", "dv"}) {
        const Values& gradient = out.at(name);
        const auto seen = static_cast<std::ptrdiff_t>((c.keys - c.unseen) * c.dim);
        EXPECT_TRUE(std::all_of(gradient.begin() + seen, gradient.end(), [](double value) { return value == 0.0; }));
      }
    }
  }
}

// A part of a (batch * length, heads * dim) matrix, and its place in it.
struct Part {
  int64_t batch, length, heads, dim;
  int64_t first_row, rows, first_head, part_heads;

  // each(index in the whole, index in the part)
  void each(const std::function<void(size_t, size_t)>& body) const {
    for (int64_t i = 0; i < batch * rows * part_heads * dim; ++i) {
      const int64_t head = i / dim % part_heads, row = i / (dim * part_heads) % rows,
                    sample = i / (dim * part_heads * rows);
      const int64_t whole = ((sample * length + first_row + row) * heads + first_head + head) * dim + i % dim;
      body(static_cast<size_t>(whole), static_cast<size_t>(i));
    }
  }
  Values cut(const Values& whole) const {
    Values values(static_cast<size_t>(batch * rows * part_heads * dim));
    each([&](size_t from, size_t to) { values[to] = whole[from]; });
    return values;
  }
  void add(const Values& part, Values& whole) const {
    whole.resize(static_cast<size_t>(batch * length * heads * dim));
    each([&](size_t to, size_t from) { whole[to] += part[from]; });
  }
};

// As ranks do that divide the heads in two, and the queries at 20.
TEST(Attention, PartsOfTheHeadsAndQueriesMakeUpTheWhole) {
  const Case whole{2, 48, 48, 4, 2, 8, 0.3};
  Named in = inputs_of(whole);
  const Runner parts = [&](Stream& stream, DType dtype, const Named& inputs) {
    Named sums;
    for (const int64_t half : {0, 1}) {
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 20}, {20, 48}}) {
        const Case c{.batch = 2,
                     .queries = end - begin,
                     .keys = end,
                     .heads = 2,
                     .kv_heads = 1,
                     .dim = 8,
                     .dropout = 0.3,
                     .head_offset = 2 * half,
                     .dropout_keys = 48};
        const Part queries{2, 48, 4, 8, begin, end - begin, 2 * half, 2};
        const Part keys{2, 48, 2, 8, 0, end, half, 1};
        const Named out = run_backward(c)(stream, dtype,
                                          {{"q", queries.cut(inputs.at("q"))},
                                           {"dout", queries.cut(inputs.at("dout"))},
                                           {"k", keys.cut(inputs.at("k"))},
                                           {"v", keys.cut(inputs.at("v"))},
                                           {"ids", inputs.at("ids")}});
        queries.add(out.at("dq"), sums["dq"]);
        keys.add(out.at("dk"), sums["dk"]);
        keys.add(out.at("dv"), sums["dv"]);
      }
    }
    return sums;
  };
  expect_matches(
      parts, [&](const Named& inputs) { return run_in_double(run_backward(whole), inputs); }, in);
}

TEST(Attention, RefusesWhatBreaksTheContract) {
  constexpr int64_t kRows = 12, kWidth = 32;
  ThreadPool pool(2);
  Stream stream(pool);
  const Buffer q(DType::f32, kRows, kWidth, 0, random_values(kRows * kWidth, 1)), out(DType::f32, kRows, kWidth);
  const Buffer kv(DType::f32, kRows, kWidth / 2, 0, random_values(kRows * kWidth / 2, 2)),
      log_sum_exp(DType::f32, 8, 6);
  const Buffer scratch(DType::f32, 1, 1 << 20), bounds = vector_of(DType::i32, {0, 12});
  const auto with = [&](const std::function<void(AttentionForward&)>& change) {
    AttentionForward args{.q = q.tensor(),
                          .k = kv.tensor(),
                          .v = kv.tensor(),
                          .out = out.tensor(),
                          .log_sum_exp = log_sum_exp.tensor(),
                          .batch = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .scale = 0.5,
                          .scratch = scratch.tensor()};
    change(args);
    return [args, &stream] { attention_forward(stream, args); };
  };
  EXPECT_NO_THROW(with([](AttentionForward&) {})());
  expect_refused(with([](AttentionForward& args) { args.query_offset = 1; }));
  expect_refused(with([](AttentionForward& args) { args.kv_heads = 3; }));
  expect_refused(with([](AttentionForward& args) { args.heads = 0; }));
  expect_refused(with([](AttentionForward& args) { args.batch = 5; }));
  expect_refused(with([](AttentionForward& args) { args.scale = 0.0; }));
  expect_refused(with([](AttentionForward& args) { args.dropout = {.probability = 0.1}; }));
  expect_refused(with([](AttentionForward& args) { args.head_offset = -1; }));
  expect_refused(with([](AttentionForward& args) { args.dropout_keys = 5; }));
  expect_refused(with([&](AttentionForward& args) { args.document_bounds = bounds.vector(); }));
}

}  // namespace
}  // namespace megalith::ops::testing
