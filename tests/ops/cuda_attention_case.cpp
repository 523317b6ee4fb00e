#include "ops/cuda_attention_case.h"

namespace megalith::ops::testing {

namespace {
constexpr uint64_t kSeed = 7;
constexpr uint32_t kSite = 3;
}  // namespace

std::string describe(const AttentionCase& c) {
  return fmt::format("batch {} queries {} from {} keys {} heads {}/{} dim {} dropout {} documents of {}, room for {}",
                     c.batch, c.queries, c.offset(), c.keys, c.heads, c.kv_heads, c.dim, c.dropout, c.document, c.room);
}

Named inputs_of(const AttentionCase& c) {
  return {{"q", random_values(c.q_rows() * c.q_cols(), 1)},
          {"k", random_values(c.k_rows() * c.kv_cols(), 2)},
          {"v", random_values(c.k_rows() * c.kv_cols(), 3)},
          {"dout", random_values(c.q_rows() * c.q_cols(), 4)}};
}

std::vector<int64_t> sample_ids_of(const AttentionCase& c) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < c.batch; ++i) ids.push_back(500 + 3 * i);
  return ids;
}

std::vector<int32_t> starts_of(const AttentionCase& c) {
  std::vector<int32_t> starts;
  for (int64_t row = 0; row < c.q_rows(); ++row) {
    const int64_t position = c.offset() + row % c.queries;
    starts.push_back(static_cast<int32_t>(c.start_of(row / c.queries, position)));
  }
  return starts;
}

std::vector<int32_t> bounds_of(const AttentionCase& c) {
  const std::vector<int32_t> starts = starts_of(c);
  std::vector<int32_t> bounds;
  for (int64_t row = 0; row < c.q_rows(); ++row) {
    if (starts[static_cast<size_t>(row)] == row % c.queries) bounds.push_back(static_cast<int32_t>(row));
  }
  EXPECT_LE(bounds.size(), c.room);
  bounds.resize(static_cast<size_t>(c.room + 1), static_cast<int32_t>(c.q_rows()));
  return bounds;
}

AttentionShape shape_of(const AttentionCase& c, DType dtype) {
  return {.dtype = dtype,
          .batch = c.batch,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .query_length = c.queries,
          .key_length = c.keys,
          .head_dim = c.dim,
          .documents = c.room};
}

AttentionForward AttentionTensors::forward(const AttentionCase& c) const {
  return {.q = q,
          .k = k,
          .v = v,
          .out = out,
          .log_sum_exp = log_sum_exp,
          .batch = c.batch,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .query_offset = c.offset(),
          .scale = c.scale(),
          .document_starts = c.document == 0 ? Tensor{} : starts,
          .document_bounds = bounds,
          .dropout = {.probability = c.dropout,
                      .seed = kSeed,
                      .site = kSite,
                      .step = step,
                      .sample_ids = ids,
                      .length = c.queries},
          .head_offset = c.head_offset,
          .dropout_keys = c.dropout_keys,
          .scratch = scratch};
}

AttentionBackward AttentionTensors::backward(const AttentionCase& c, bool deterministic) const {
  return {.forward = forward(c), .dout = dout, .dq = dq, .dk = dk, .dv = dv, .deterministic = deterministic};
}

Named expected_of(const AttentionCase& c) {
  Named values = inputs_of(c);
  const auto tensor = [&](const char* name, int64_t rows, int64_t cols) {
    values[name].resize(static_cast<size_t>(rows * cols));
    return Tensor(values[name].data(), DType::f64, Shape{rows, cols});
  };
  ThreadPool pool(2);
  Stream stream(pool);
  auto ids = sample_ids_of(c);
  auto starts = starts_of(c);
  const int64_t scratch = attention_scratch(Device::cpu, shape_of(c, DType::f64), pool.threads());
  const AttentionTensors tensors{.q = tensor("q", c.q_rows(), c.q_cols()),
                                 .k = tensor("k", c.k_rows(), c.kv_cols()),
                                 .v = tensor("v", c.k_rows(), c.kv_cols()),
                                 .out = tensor("out", c.q_rows(), c.q_cols()),
                                 .log_sum_exp = tensor("log_sum_exp", c.batch * c.heads, c.queries),
                                 .dout = tensor("dout", c.q_rows(), c.q_cols()),
                                 .dq = tensor("dq", c.q_rows(), c.q_cols()),
                                 .dk = tensor("dk", c.k_rows(), c.kv_cols()),
                                 .dv = tensor("dv", c.k_rows(), c.kv_cols()),
                                 .starts = Tensor(starts.data(), DType::i32, Shape{c.q_rows()}),
                                 .ids = Tensor(ids.data(), DType::i64, Shape{c.batch}),
                                 .scratch = tensor("scratch", 1, scratch),
                                 .step = &kAttentionStep};
  attention_forward(stream, tensors.forward(c));
  Named expected{{"out", values["out"]}, {"log_sum_exp", values["log_sum_exp"]}};
  attention_backward(stream, tensors.backward(c, true));
  for (const char* name : {"dq", "dk", "dv"}) expected[name] = values[name];
  return expected;
}

}  // namespace megalith::ops::testing
