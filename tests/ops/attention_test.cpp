#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "ops/op_test.h"

namespace megalith::ops::testing {
namespace {

const DropoutKey kKey{.seed = 7, .site = 3, .step = 11};

struct Case {
  int64_t batch, queries, keys, heads, kv_heads, dim;
  double dropout = 0.0;
  bool packed = false;   // q, k, v and their gradients are columns of one matrix
  int64_t document = 0;  // the length of documents in a sample; 0: a sample is one document
  int64_t unseen = 0;    // keys after the last query
  int64_t head_offset = 0;
  int64_t dropout_keys = 0;

  int64_t offset() const { return keys - queries - unseen; }
  // Documents are cut elsewhere in each sample.
  int64_t start_of(int64_t sample, int64_t position) const {
    return document == 0 ? 0 : std::max<int64_t>(0, (position + sample) / document * document - sample);
  }
};

const std::vector<Case> kSquareCases = {
    {1, 1, 1, 1, 1, 1},
    {2, 3, 3, 2, 2, 5},
    {1, 40, 40, 4, 2, 16, 0.2},
    {2, 65, 65, 6, 2, 8, 0.0, true},
    {1, 129, 129, 3, 1, 64, 0.1},
    {1, 300, 300, 2, 2, 24, 0.1, true},
    {1, 515, 515, 2, 1, 8},
    {2, 70, 70, 4, 2, 8, 0.0, true, 9},
    {1, 600, 600, 2, 1, 8, 0.1, false, 270},
};
const std::vector<Case> kOffsetCases = {
    {1, 1, 9, 4, 2, 16},
    {2, 1, 300, 2, 1, 8},
    {1, 5, 261, 2, 2, 12, 0.3},
    {1, 140, 270, 3, 3, 7, 0.0},
    {2, 37, 150, 4, 2, 8, 0.1, false, 0, 60, 3, 201},
    {1, 140, 700, 2, 1, 8, 0.0, false, 0, 400},
    {1, 130, 400, 2, 2, 16, 0.2, false, 50, 20, 1},
    {2, 64, 300, 2, 1, 64, 0.0, false, 90, 0},
};

std::string describe(const Case& c) {
  return fmt::format("batch {} queries {} from {} keys {} heads {}/{} dim {} dropout {} packed {} documents of {}",
                     c.batch, c.queries, c.offset(), c.keys, c.heads, c.kv_heads, c.dim, c.dropout, c.packed,
                     c.document);
}

double scale_of(const Case& c) {
  return 1.0 / std::sqrt(static_cast<double>(c.dim));
}

// q, k and v (or their gradients), apart or as columns of one matrix.
class Projections {
 public:
  Projections(const Case& c, DType dtype)
      : case_(c),
        packed_(dtype, c.batch * c.keys, (c.heads + 2 * c.kv_heads) * c.dim, 1),
        q_(dtype, c.batch * c.queries, c.heads * c.dim, 2),
        k_(dtype, c.batch * c.keys, c.kv_heads * c.dim, 3),
        v_(dtype, c.batch * c.keys, c.kv_heads * c.dim) {}

  Tensor q() const { return case_.packed ? packed_.tensor().slice_cols(0, case_.heads * case_.dim) : q_.tensor(); }
  Tensor k() const { return pick(k_, 0); }
  Tensor v() const { return pick(v_, 1); }

 private:
  Tensor pick(const Buffer& alone, int64_t index) const {
    const int64_t begin = (case_.heads + index * case_.kv_heads) * case_.dim;
    return case_.packed ? packed_.tensor().slice_cols(begin, begin + case_.kv_heads * case_.dim) : alone.tensor();
  }

  Case case_;
  Buffer packed_, q_, k_, v_;
};

int64_t scratch_of(const Case& c, Stream& stream, DType dtype) {
  return attention_scratch(stream.device(),
                           {.dtype = dtype,
                            .batch = c.batch,
                            .heads = c.heads,
                            .kv_heads = c.kv_heads,
                            .query_length = c.queries,
                            .key_length = c.keys,
                            .head_dim = c.dim},
                           stream.pool().threads());
}

Values starts_of(const Case& c) {
  Values starts;
  for (int64_t row = 0; row < c.batch * c.queries; ++row) {
    starts.push_back(static_cast<double>(c.start_of(row / c.queries, c.offset() + row % c.queries)));
  }
  return starts;
}

struct ForwardRun {
  Projections inputs;
  Buffer out, log_sum_exp, scratch, ids, starts;
  Placed<uint64_t> step;

  ForwardRun(const Case& c, Stream& stream, DType dtype, const Named& in)
      : inputs(c, dtype),
        out(dtype, c.batch * c.queries, c.heads * c.dim, 1),
        log_sum_exp(main_dtype(dtype), c.batch * c.heads, c.queries),
        scratch(main_dtype(dtype), 1, scratch_of(c, stream, dtype)),
        ids(vector_of(DType::i64, in.at("ids"))),
        starts(vector_of(DType::i32, starts_of(c))),
        step(kKey.step) {
    write_values(inputs.q(), in.at("q"));
    write_values(inputs.k(), in.at("k"));
    write_values(inputs.v(), in.at("v"));
    attention_forward(stream, arguments(c));
  }

  AttentionForward arguments(const Case& c) const {
    return {.q = inputs.q(),
            .k = inputs.k(),
            .v = inputs.v(),
            .out = out.tensor(),
            .log_sum_exp = log_sum_exp.tensor(),
            .batch = c.batch,
            .heads = c.heads,
            .kv_heads = c.kv_heads,
            .query_offset = c.offset(),
            .scale = scale_of(c),
            .document_starts = c.document == 0 ? Tensor() : starts.vector(),
            .dropout = {.probability = c.dropout,
                        .seed = kKey.seed,
                        .site = kKey.site,
                        .step = step.data(),
                        .sample_ids = ids.vector(),
                        .length = c.queries},
            .head_offset = c.head_offset,
            .dropout_keys = c.dropout_keys,
            .scratch = scratch.tensor()};
  }
};

Runner run_forward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const ForwardRun run(c, stream, dtype, in);
    return Named{{"out", run.out.values()}, {"log_sum_exp", run.log_sum_exp.values()}};
  };
}

Runner run_backward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const ForwardRun run(c, stream, dtype, in);
    const Buffer dout(dtype, c.batch * c.queries, c.heads * c.dim, 0, in.at("dout"));
    const Projections gradients(c, dtype);
    attention_backward(stream, {.forward = run.arguments(c),
                                .dout = dout.tensor(),
                                .dq = gradients.q(),
                                .dk = gradients.k(),
                                .dv = gradients.v()});
    return Named{
        {"dq", read_values(gradients.q())}, {"dk", read_values(gradients.k())}, {"dv", read_values(gradients.v())}};
  };
}

bool kept(const Case& c, const Named& in, int64_t sample, int64_t head, int64_t position, int64_t key) {
  const auto id = static_cast<uint64_t>(in.at("ids")[static_cast<size_t>(sample)]);
  const int64_t channel = (c.head_offset + head) * (c.dropout_keys == 0 ? c.keys : c.dropout_keys) + key;
  const auto words =
      philox(kKey.of_sample(id), {static_cast<uint32_t>(channel / 4), static_cast<uint32_t>(position), 0, 0});
  return words[static_cast<size_t>(channel % 4)] >= dropout_threshold(c.dropout);
}

// One query of one head.
void attend(const Case& c, const Named& in, int64_t sample, int64_t head, int64_t query, Named& out) {
  const int64_t kv_head = head / (c.heads / c.kv_heads);
  const int64_t position = c.offset() + query;
  const double* q = in.at("q").data() + ((sample * c.queries + query) * c.heads + head) * c.dim;
  const auto row = [&](const Values& values, int64_t key) {
    return values.data() + ((sample * c.keys + key) * c.kv_heads + kv_head) * c.dim;
  };
  const Values& k = in.at("k");
  const Values& v = in.at("v");
  Values weights;
  double sum = 0.0;
  const int64_t first = c.start_of(sample, position);
  for (int64_t key = first; key <= position; ++key) {
    double score = 0.0;
    for (int64_t i = 0; i < c.dim; ++i) score += q[i] * row(k, key)[i];
    weights.push_back(std::exp(scale_of(c) * score));
    sum += weights.back();
  }
  double* result = out["out"].data() + ((sample * c.queries + query) * c.heads + head) * c.dim;
  for (int64_t key = first; key <= position; ++key) {
    if (!kept(c, in, sample, head, position, key)) continue;
    const double weight = weights[static_cast<size_t>(key - first)] / sum / (1.0 - c.dropout);
    for (int64_t i = 0; i < c.dim; ++i) result[i] += weight * row(v, key)[i];
  }
  out["log_sum_exp"][static_cast<size_t>((sample * c.heads + head) * c.queries + query)] = std::log(sum);
}

Reference naive_forward(const Case& c) {
  return [c](const Named& in) {
    Named out{{"out", Values(static_cast<size_t>(c.batch * c.queries * c.heads * c.dim))},
              {"log_sum_exp", Values(static_cast<size_t>(c.batch * c.heads * c.queries))}};
    for (int64_t sample = 0; sample < c.batch; ++sample) {
      for (int64_t head = 0; head < c.heads; ++head) {
        for (int64_t query = 0; query < c.queries; ++query) attend(c, in, sample, head, query, out);
      }
    }
    return out;
  };
}

Named inputs_of(const Case& c) {
  Named in{{"q", random_values(c.batch * c.queries * c.heads * c.dim, 1)},
           {"k", random_values(c.batch * c.keys * c.kv_heads * c.dim, 2)},
           {"v", random_values(c.batch * c.keys * c.kv_heads * c.dim, 3)}};
  for (int64_t i = 0; i < c.batch; ++i) in["ids"].push_back(static_cast<double>(500 + 3 * i));
  return in;
}

std::vector<Case> all_cases() {
  std::vector<Case> all = kSquareCases;
  all.insert(all.end(), kOffsetCases.begin(), kOffsetCases.end());
  return all;
}

TEST(Attention, ForwardMatchesItsFormula) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(describe(c));
    expect_matches(run_forward(c), naive_forward(c), inputs_of(c));
  }
}

TEST(Attention, GradientsMatchFiniteDifferences) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(describe(c));
    expect_gradients(run_forward(c), run_backward(c), inputs_of(c), "out");
  }
}

TEST(Attention, BackwardIsTheSameInEveryDtypeAndOnAnyThreads) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(describe(c));
    Named in = inputs_of(c);
    in["dout"] = random_values(c.batch * c.queries * c.heads * c.dim, 4);
    expect_matches(
        run_backward(c), [&](const Named& inputs) { return run_on(1, run_backward(c), DType::f64, inputs); }, in);
  }
}

TEST(Attention, SurvivesLargeScores) {
  const Case c{1, 20, 20, 1, 1, 4};
  Named in = inputs_of(c);
  for (double& value : in["q"]) value *= 16.0;
  for (double& value : in["k"]) value *= 8.0;
  EXPECT_LT(relative_error(run_on(1, run_forward(c), DType::f32, in).at("out"), naive_forward(c)(in).at("out")), 1e-4);
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
  in["dout"] = random_values(4 * 33 * 2 * 8, 4);
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
  const Case c{1, 5, 40, 1, 1, 8, 0.0, false, 0, 25};
  Named in = inputs_of(c);
  in["dout"] = random_values(c.queries * c.dim, 4);
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
  in["dout"] = random_values(whole.batch * whole.queries * whole.heads * whole.dim, 4);
  const Runner parts = [&](Stream& stream, DType dtype, const Named& inputs) {
    Named sums;
    for (const int64_t half : {0, 1}) {
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 20}, {20, 48}}) {
        const Case c{2, end - begin, end, 2, 1, 8, 0.3, false, 0, 0, 2 * half, 48};
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
      parts, [&](const Named& inputs) { return run_on(1, run_backward(whole), DType::f64, inputs); }, in);
}

TEST(Attention, RefusesWhatBreaksTheContract) {
  const Case c{2, 6, 6, 4, 2, 8};
  ThreadPool pool(2);
  Stream stream(pool);
  const ForwardRun run(c, stream, DType::f32, inputs_of(c));
  const auto with = [&](const std::function<void(AttentionForward&)>& change) {
    AttentionForward args = run.arguments(c);
    change(args);
    return [args, &stream] { attention_forward(stream, args); };
  };
  EXPECT_NO_THROW(with([](AttentionForward&) {})());
  expect_refused(with([](AttentionForward& args) { args.query_offset = 1; }));
  expect_refused(with([](AttentionForward& args) { args.kv_heads = 3; }));
  expect_refused(with([](AttentionForward& args) { args.batch = 5; }));
  expect_refused(with([](AttentionForward& args) { args.scratch = args.scratch.slice_cols(0, 100); }));
  expect_refused(with([](AttentionForward& args) { args.dropout = {.probability = 0.1}; }));
  expect_refused(with([](AttentionForward& args) { args.log_sum_exp = args.out; }));
  expect_refused(with([](AttentionForward& args) { args.head_offset = -1; }));
  expect_refused(with([](AttentionForward& args) { args.dropout_keys = 5; }));
}

}  // namespace
}  // namespace megalith::ops::testing
