#pragma once

#include "ops/dropout.h"
#include "ops/op.h"

namespace megalith::ops {

// Causal softmax attention with grouped queries: query head h reads key-value head h / (heads / kv_heads).
//   q (B*Tq, heads*D), k and v (B*Tk, kv_heads*D), rows may be strided (columns of a packed qkv);
//   out (B*Tq, heads*D); log_sum_exp (B*heads, Tq) main dtype: the natural log of each row's sum of exp(scale * q.k).
//   Query i of a sample stands at position query_offset + i and sees the keys at positions <= its own; keys start at 0.
//   document_starts (B*Tq) i32, optional: where the query's document begins in its sample; earlier keys are not seen.
//   It does not fall along a sample. With dropout, probability p of each weight is dropped: channel =
//   (head_offset + head) * dropout_keys + key, position = that of the query; dropout_keys are the keys of a whole
//   sample (0: Tk), head_offset is what comes before where ranks divide the heads.
//   document_bounds (D+1) i32, optional beside document_starts: the rows of q at which the documents of the batch
//   begin, ascending; what is left of it holds the number of rows. Where Tq = Tk, a GPU leaves such documents to cuDNN.
struct AttentionForward {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor out;
  Tensor log_sum_exp;
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t query_offset = 0;
  double scale = 0.0;
  Tensor document_starts = {};
  Tensor document_bounds = {};
  Dropout dropout = {};
  int64_t head_offset = 0;
  int64_t dropout_keys = 0;
  Tensor scratch;  // main dtype, attention_scratch() elements
};
MEGALITH_OP(attention_forward, AttentionForward)

// What `forward` computed is read, its scratch is used; dq, dk, dv have the shapes of q, k, v (columns of a packed
// dqkv) and are overwritten.
struct AttentionBackward {
  AttentionForward forward;
  Tensor dout;
  Tensor dq;
  Tensor dk;
  Tensor dv;
  bool deterministic = true;  // on a GPU: sums in a fixed order
};
MEGALITH_OP(attention_backward, AttentionBackward)

struct AttentionShape {
  DType dtype = DType::f32;
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t query_length = 0;
  int64_t key_length = 0;
  int64_t head_dim = 0;
  int64_t documents = 0;  // that document_bounds has room for
};
AttentionShape shape_of(const AttentionForward& args);

// What document_bounds of a batch should have room for. More documents than that are shorter than 256 tokens on
// average, where our own kernel is faster than cuDNN: they should have no bounds.
constexpr int64_t document_room(int64_t tokens) {
  return ceil_div(tokens, 256);
}

// Elements of scratch, in the main dtype, that either direction needs. On the CPU: one part per thread, so it depends
// on the threads; the results do not. It asks no device, so that memory can be planned anywhere.
int64_t attention_scratch(Device device, const AttentionShape& shape, int threads);

}  // namespace megalith::ops
