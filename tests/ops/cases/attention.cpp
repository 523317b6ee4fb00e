#include "ops/cases/attention.h"

#include <numeric>

namespace megalith::ops::testing {

namespace {

using Case = AttentionCase;

const DropoutKey kKey{.seed = 7, .site = 3, .step = 11};

Case packed(Case c) {
  c.packed = true;
  return c;
}

const std::vector<Case> kSmall = {
    {1, 1, 1, 1, 1, 1},
    {2, 3, 3, 2, 2, 5},
    {1, 40, 40, 4, 2, 16, 0.2},
    packed({2, 65, 65, 6, 2, 8}),
    {1, 129, 129, 3, 1, 64, 0.1},
    packed({1, 300, 300, 2, 2, 24, 0.1}),
    {1, 515, 515, 2, 1, 8},
    packed({2, 70, 70, 4, 2, 8, 0.0, 9}),
    {1, 600, 600, 2, 1, 8, 0.1, 270},
    {1, 33, 33, 2, 1, 4, 0.2, 5, 8},
    // fewer queries than keys
    {1, 1, 9, 4, 2, 16},
    {2, 1, 300, 2, 1, 8},
    {1, 5, 261, 2, 2, 12, 0.3},
    {1, 140, 270, 3, 3, 7},
    {2, 37, 150, 4, 2, 8, 0.1, 0, 0, 60, 3, 201},
    {1, 140, 700, 2, 1, 8, 0.0, 0, 0, 400},
    {1, 130, 400, 2, 2, 16, 0.2, 50, 0, 20, 1},
    {2, 64, 300, 2, 1, 64, 0.0, 90},
};
const std::vector<Case> kLarge = {
    packed({1, 2048, 2048, 12, 12, 64}), packed({1, 2048, 2048, 12, 12, 64, 0.1}),
    packed({1, 4096, 4096, 4, 4, 128}),  packed({1, 4096, 4096, 4, 4, 128, 0.1}),
    packed({1, 256, 256, 4, 4, 32}),     packed({1, 256, 256, 4, 4, 32, 0.1}),
};

// q, k and v (or their gradients), apart or as columns of one matrix.
class Projections {
 public:
  Projections(const Case& c, DType dtype, const Named& in = {}) : case_(c) {
    const std::vector<std::string> names = {"q", "k", "v"};
    const auto cols = [&](size_t part) { return part == 0 ? c.q_cols() : c.kv_cols(); };
    if (!c.packed) {
      constexpr int64_t kGaps[] = {2, 3, 0};
      for (size_t i = 0; i < names.size(); ++i) {
        const int64_t rows = i == 0 ? c.q_rows() : c.k_rows();
        parts_.push_back(in.empty() ? Buffer(dtype, rows, cols(i), kGaps[i])
                                    : Buffer(dtype, rows, cols(i), kGaps[i], in.at(names[i])));
      }
      return;
    }
    const int64_t width = c.q_cols() + 2 * c.kv_cols();
    Values all;
    for (int64_t row = 0; !in.empty() && row < c.k_rows(); ++row) {
      for (size_t i = 0; i < names.size(); ++i) {
        const auto begin = in.at(names[i]).begin() + row * cols(i);
        all.insert(all.end(), begin, begin + cols(i));
      }
    }
    parts_.push_back(in.empty() ? Buffer(dtype, c.k_rows(), width, 1) : Buffer(dtype, c.k_rows(), width, 1, all));
  }

  Tensor q() const { return case_.packed ? columns(0, case_.q_cols()) : parts_[0].tensor(); }
  Tensor k() const { return case_.packed ? columns(case_.q_cols(), case_.kv_cols()) : parts_[1].tensor(); }
  Tensor v() const {
    return case_.packed ? columns(case_.q_cols() + case_.kv_cols(), case_.kv_cols()) : parts_[2].tensor();
  }

 private:
  Tensor columns(int64_t begin, int64_t count) const { return parts_[0].tensor().slice_cols(begin, begin + count); }

  Case case_;
  std::vector<Buffer> parts_;
};

template <class T>
Buffer vector_of_integers(DType dtype, const std::vector<T>& values) {
  return vector_of(dtype, Values(values.begin(), values.end()));
}

struct ForwardRun {
  Projections inputs;
  Buffer out, log_sum_exp, scratch;
  Placed<uint64_t> step;
  std::vector<Buffer> held;  // what only some cases have
  AttentionForward args;

  ForwardRun(const Case& c, Stream& stream, DType dtype, const Named& in)
      : inputs(c, dtype, in),
        out(dtype, c.q_rows(), c.q_cols(), 1),
        log_sum_exp(main_dtype(dtype), c.batch * c.heads, c.queries),
        scratch(main_dtype(dtype), 1, attention_scratch(stream.device(), shape_of(c, dtype), stream.pool().threads())),
        step(kKey.step),
        args{.q = inputs.q(),
             .k = inputs.k(),
             .v = inputs.v(),
             .out = out.tensor(),
             .log_sum_exp = log_sum_exp.tensor(),
             .batch = c.batch,
             .heads = c.heads,
             .kv_heads = c.kv_heads,
             .query_offset = c.offset(),
             .scale = c.scale(),
             .dropout = {.probability = c.dropout,
                         .seed = kKey.seed,
                         .site = kKey.site,
                         .step = step.data(),
                         .length = c.queries},
             .head_offset = c.head_offset,
             .dropout_keys = c.dropout_keys,
             .scratch = scratch.tensor()} {
    const auto hold = [&](const Buffer& buffer) { return held.emplace_back(buffer).vector(); };
    if (c.dropout > 0.0) args.dropout.sample_ids = hold(vector_of(DType::i64, in.at("ids")));
    if (c.document > 0) args.document_starts = hold(vector_of_integers(DType::i32, starts_of(c)));
    if (c.room > 0) args.document_bounds = hold(vector_of_integers(DType::i32, bounds_of(c)));
    attention_forward(stream, args);
  }
};

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
    const double score = std::inner_product(q, q + c.dim, row(k, key), 0.0);
    weights.push_back(std::exp(c.scale() * score));
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

}  // namespace

std::string describe(const Case& c) {
  return fmt::format("batch {} queries {} from {} keys {} heads {}/{} dim {} dropout {} documents of {}, room for {}{}",
                     c.batch, c.queries, c.offset(), c.keys, c.heads, c.kv_heads, c.dim, c.dropout, c.document, c.room,
                     c.packed ? " packed" : "");
}

Named inputs_of(const Case& c) {
  const std::vector<int64_t> ids = sample_ids_of(c);
  return {{"q", random_values(c.q_rows() * c.q_cols(), 1)},
          {"k", random_values(c.k_rows() * c.kv_cols(), 2)},
          {"v", random_values(c.k_rows() * c.kv_cols(), 3)},
          {"dout", random_values(c.q_rows() * c.q_cols(), 4)},
          {"ids", Values(ids.begin(), ids.end())}};
}

std::vector<int64_t> sample_ids_of(const Case& c) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < c.batch; ++i) ids.push_back(500 + 3 * i);
  return ids;
}

std::vector<int32_t> starts_of(const Case& c) {
  std::vector<int32_t> starts;
  for (int64_t row = 0; row < c.q_rows(); ++row) {
    const int64_t position = c.offset() + row % c.queries;
    starts.push_back(static_cast<int32_t>(c.start_of(row / c.queries, position)));
  }
  return starts;
}

std::vector<int32_t> bounds_of(const Case& c) {
  const std::vector<int32_t> starts = starts_of(c);
  std::vector<int32_t> bounds;
  for (int64_t row = 0; row < c.q_rows(); ++row) {
    if (starts[static_cast<size_t>(row)] == row % c.queries) bounds.push_back(static_cast<int32_t>(row));
  }
  MEGALITH_CHECK(std::ssize(bounds) <= c.room, "{} documents, room for {}", bounds.size(), c.room);
  bounds.resize(static_cast<size_t>(c.room + 1), static_cast<int32_t>(c.q_rows()));
  return bounds;
}

AttentionShape shape_of(const Case& c, DType dtype) {
  return {.dtype = dtype,
          .batch = c.batch,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .query_length = c.queries,
          .key_length = c.keys,
          .head_dim = c.dim,
          .documents = c.room};
}

Runner run_forward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const ForwardRun run(c, stream, dtype, in);
    return Named{{"out", run.out.values()}, {"log_sum_exp", run.log_sum_exp.values()}};
  };
}

Runner run_backward(const Case& c) {
  return [c](Stream& stream, DType dtype, const Named& in) {
    const ForwardRun run(c, stream, dtype, in);
    const Buffer dout(dtype, c.q_rows(), c.q_cols(), 0, in.at("dout"));
    const Projections gradients(c, dtype);
    attention_backward(
        stream,
        {.forward = run.args, .dout = dout.tensor(), .dq = gradients.q(), .dk = gradients.k(), .dv = gradients.v()});
    return Named{
        {"dq", read_values(gradients.q())}, {"dk", read_values(gradients.k())}, {"dv", read_values(gradients.v())}};
  };
}

Reference naive_forward(const Case& c) {
  return [c](const Named& in) {
    Named out{{"out", Values(static_cast<size_t>(c.q_rows() * c.q_cols()))},
              {"log_sum_exp", Values(static_cast<size_t>(c.heads * c.q_rows()))}};
    for (int64_t sample = 0; sample < c.batch; ++sample) {
      for (int64_t head = 0; head < c.heads; ++head) {
        for (int64_t query = 0; query < c.queries; ++query) attend(c, in, sample, head, query, out);
      }
    }
    return out;
  };
}

OpCases attention_cases(Size size) {
  OpCases cases;
  for (const Case& c : size == Size::small ? kSmall : kLarge) {
    cases.push_back({.operation = "attention_forward",
                     .shape = describe(c),
                     .run = run_forward(c),
                     .inputs = [c] { return inputs_of(c); },
                     .expected = naive_forward(c),
                     .backward = run_backward(c),
                     .output = "out"});
    cases.push_back({.operation = "attention_backward", .shape = describe(c), .run = run_backward(c), .inputs = [c] {
                       return inputs_of(c);
                     }});
  }
  return cases;
}

}  // namespace megalith::ops::testing
