#include "ops/attention.h"

#include <algorithm>

#include "ops/cpu/attention.h"

namespace megalith::ops {

namespace {

// The same with documents. cuDNN lays its sums out like the gradients, which are columns of a packed matrix: with gaps.
// It also needs tables of where each document begins, and the statistics in an order of its own.
int64_t documents_scratch(const AttentionShape& shape) {
  constexpr int64_t kTables = 12;
  constexpr int64_t kSlack = int64_t{1} << 18;
  const int64_t tokens = shape.batch * shape.query_length;
  const int64_t row = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  const int64_t shared_by = shape.heads / shape.kv_heads;
  const int64_t dkv = shared_by == 1 ? 0 : 2 * shared_by * row;
  return tokens * (row + dkv + 3 * shape.heads) + kTables * shape.documents + kSlack;
}

// cuDNN's backward pass sums dq up in fp32, keeps one number per query and head, and, where query heads share a
// key-value head, has dk and dv of every query head before it sums them. Statistics of samples that end inside of a
// tile are copied for it. Our own needs the one number alone. Lengths are rounded up to cuDNN's tiles, and kSlack
// covers its semaphores.
int64_t cuda_scratch(const AttentionShape& shape) {
  constexpr int64_t kTile = 128;
  constexpr int64_t kSlack = int64_t{1} << 18;
  const int64_t pairs = shape.batch * shape.heads;
  const int64_t queries = round_up(shape.query_length, kTile);
  const int64_t keys = round_up(shape.key_length, kTile);
  const int64_t stats = pairs * queries;
  if (shape.dtype != DType::bf16 || shape.head_dim % 8 != 0) return stats;
  const int64_t dim = round_up(shape.head_dim, 32);
  const int64_t dq = stats * dim;
  const int64_t dkv = shape.heads == shape.kv_heads ? 0 : 2 * pairs * keys * dim;
  const int64_t copied_stats = queries == shape.query_length ? 0 : stats;
  const int64_t plain = dq + dkv + 2 * stats + copied_stats + kSlack;
  return shape.documents == 0 ? plain : std::max(plain, documents_scratch(shape));
}

void check_documents(const Contract& contract, const AttentionForward& args) {
  const Tensor& bounds = args.document_bounds;
  if (args.document_starts) contract.vector(args.document_starts, "document_starts", DType::i32, args.q.rows());
  if (!bounds) return;
  contract.vector(bounds, "document_bounds", DType::i32, bounds.elements());
  contract.require(bounds.elements() > 1, "document_bounds of {} documents", bounds.elements() - 1);
  contract.require(static_cast<bool>(args.document_starts), "document_bounds without document_starts");
}

}  // namespace

int64_t attention_scratch(Device device, const AttentionShape& shape, int threads) {
  if (device == Device::cuda) return cuda_scratch(shape);
  return threads * cpu::attention_scratch_part(shape.key_length, shape.head_dim);
}

AttentionShape shape_of(const AttentionForward& args) {
  return {.dtype = args.q.dtype,
          .batch = args.batch,
          .heads = args.heads,
          .kv_heads = args.kv_heads,
          .query_length = div_exact(args.q.rows(), args.batch),
          .key_length = div_exact(args.k.rows(), args.batch),
          .head_dim = div_exact(args.q.cols(), args.heads),
          .documents = args.document_bounds ? args.document_bounds.elements() - 1 : 0};
}

void check(const Contract& contract, const AttentionForward& args) {
  contract.floats(args.q, "q");
  contract.require(args.batch > 0 && args.q.rows() % args.batch == 0 && args.k.rows() % args.batch == 0,
                   "{} rows of q and {} of k in a batch of {}", args.q.rows(), args.k.rows(), args.batch);
  contract.require(
      args.heads > 0 && args.kv_heads > 0 && args.heads % args.kv_heads == 0 && args.q.cols() % args.heads == 0,
      "{} columns of q in {} heads, which share {} of keys and values", args.q.cols(), args.heads, args.kv_heads);
  const AttentionShape shape = shape_of(args);
  const DType main = main_dtype(shape.dtype);
  contract.matrix(args.k, "k", shape.dtype, args.k.rows(), shape.kv_heads * shape.head_dim);
  contract.like(args.v, "v", args.k);
  contract.like(args.out, "out", args.q);
  contract.matrix(args.log_sum_exp, "log_sum_exp", main, shape.batch * shape.heads, shape.query_length);
  contract.require(args.query_offset >= 0 && args.query_offset + shape.query_length <= shape.key_length,
                   "queries [{}, {} + {}) of {} keys", args.query_offset, args.query_offset, shape.query_length,
                   shape.key_length);
  contract.require(args.scale > 0.0, "scale {}", args.scale);
  check_documents(contract, args);
  check(contract, args.dropout, shape.batch);
  contract.require(args.head_offset >= 0 && (args.dropout_keys == 0 || args.dropout_keys >= shape.key_length),
                   "dropout of heads from {} on, {} keys of {}", args.head_offset, shape.key_length, args.dropout_keys);
  contract.scratch(args.scratch, main, attention_scratch(contract.device(), shape, contract.threads()));
}
OpCost cost_of(const AttentionForward& args) {
  const AttentionShape shape = shape_of(args);
  const int64_t queries = shape.query_length;
  const int64_t keys = shape.key_length;
  const int64_t seen = queries * (keys - queries) + queries * (queries + 1) / 2;  // what a causal mask leaves
  const int64_t products = 2;
  return {.kind = OpKind::attention,
          .flops = 2.0 * static_cast<double>(products * args.batch * args.q.cols() * seen),
          .bytes = bytes_of(args.q, args.k, args.v, args.out, args.log_sum_exp),
          .shape = fmt::format("{} {} x {} queries, {} keys, {}/{} heads of {}{}", name_of(args.q.dtype), args.batch,
                               queries, keys, args.heads, args.kv_heads, shape.head_dim,
                               args.dropout.probability > 0.0 ? ", dropout" : "")};
}

void check(const Contract& contract, const AttentionBackward& args) {
  check(contract, args.forward);
  contract.like(args.dout, "dout", args.forward.out);
  contract.like(args.dq, "dq", args.forward.q);
  contract.like(args.dk, "dk", args.forward.k);
  contract.like(args.dv, "dv", args.forward.v);
}
OpCost cost_of(const AttentionBackward& args) {
  OpCost cost = cost_of(args.forward);
  cost.flops *= 2.5;  // five products instead of two
  cost.bytes += bytes_of(args.dout, args.dq, args.dk, args.dv);
  return cost;
}

}  // namespace megalith::ops
