#include "ops/cuda_attention_case.h"

namespace megalith::ops::testing {

namespace {
constexpr uint64_t kSeed = 7;
constexpr uint32_t kSite = 3;
}  // namespace

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
