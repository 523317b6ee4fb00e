#include <algorithm>

#include "ops/attention.h"
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
// key-value head, has dk and dv of every query head before it sums them. Our own needs the one number alone. Lengths
// are rounded up to cuDNN's tiles, and kSlack covers its semaphores.
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
  const int64_t plain = dq + dkv + 2 * stats + kSlack;
  return shape.documents == 0 ? plain : std::max(plain, documents_scratch(shape));
}

}  // namespace

int64_t attention_scratch(Device device, const AttentionShape& shape, int threads) {
  if (device == Device::cuda) return cuda_scratch(shape);
  return threads * cpu::attention_scratch_part(shape.key_length, shape.head_dim);
}

}  // namespace megalith::ops
