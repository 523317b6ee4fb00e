#pragma once

#include <atomic>

#include "ops/attention.h"
#include "ops/cpu/blas.h"
#include "ops/cpu/math.h"
#include "ops/cpu/random.h"
#include "ops/cpu/tiles.h"

// What the two directions of attention share. Scores are made block by block (Dao, "FlashAttention-2", 2023):
// kQueryBlock queries against kKeyBlock keys, which fit in L2 and are large enough for OpenBLAS to run near its best.

namespace megalith::ops::cpu {

constexpr int64_t kQueryBlock = 128;
constexpr int64_t kKeyBlock = 256;
static_assert(kKeyBlock <= kMaxDraw);

// Elements of scratch that one thread uses.
constexpr int64_t attention_scratch_part(int64_t key_length, int64_t head_dim) {
  const int64_t scores = 3 * kQueryBlock * kKeyBlock;  // weights, dropped weights, their gradients
  const int64_t blocks =
      (3 * kQueryBlock + 2 * kKeyBlock) * head_dim;  // blocks of q, dout, out, k, v in the main dtype
  const int64_t sums = 3 * key_length * head_dim;    // dq, dk, dv in the main dtype
  return round_up(scores + blocks + sums + key_length, 16);
}

// Hands out the parts of a scratch.
template <class M>
class Carver {
 public:
  explicit Carver(M* memory) : next_(memory) {}
  M* take(int64_t elements) {
    M* part = next_;
    next_ += elements;
    return part;
  }

 private:
  M* next_;
};

// Calls body(tile, scratch of a thread) for every tile: one job per thread takes tiles until none is left.
template <class M, class Body>
void run_with_scratch(Stream& stream, int64_t tiles, M* scratch, int64_t part, const Body& body) {
  std::atomic<int64_t> next{0};
  run_tiles(stream, stream.pool().threads(), [&](int64_t job) {
    for (int64_t tile = next++; tile < tiles; tile = next++) body(tile, scratch + job * part);
  });
}

// A block as the main dtype: itself, or a widened copy in `memory`.
template <class T>
Block<const Main<T>> in_main(Block<const T> block, int64_t rows, int64_t cols, Main<T>* memory) {
  if constexpr (std::is_same_v<T, Main<T>>) {
    return block;
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const T* source = block.data + r * block.stride;
      Main<T>* target = memory + r * cols;
#pragma omp simd
      for (int64_t c = 0; c < cols; ++c) target[c] = static_cast<Main<T>>(source[c]);
    }
    return {memory, cols};
  }
}

// Where a result is summed up in the main dtype: in place, or in `memory`, from where store_sum rounds it.
template <class T>
Block<Main<T>> sum_of(Block<T> result, int64_t cols, Main<T>* memory) {
  if constexpr (std::is_same_v<T, Main<T>>) {
    return result;
  } else {
    return {memory, cols};
  }
}

template <class T>
void store_sum(Block<Main<T>> sum, int64_t rows, int64_t cols, Block<T> result) {
  if constexpr (!std::is_same_v<T, Main<T>>) {
    for (int64_t r = 0; r < rows; ++r) {
      const Main<T>* source = sum.data + r * sum.stride;
      T* target = result.data + r * result.stride;
#pragma omp simd
      for (int64_t c = 0; c < cols; ++c) target[c] = round_to<T>(source[c]);
    }
  }
}

// The rows of sample `sample` and the columns of head `head` of a (batch * length, heads * dim) tensor.
template <class T>
Block<T> head_block(const Tensor& x, int64_t length, int64_t dim, int64_t sample, int64_t head) {
  return {x.row<T>(sample * length) + head * dim, x.row_stride};
}

// Where the documents of a sample's queries begin: all at 0 where the sample is one document.
class DocumentStarts {
 public:
  DocumentStarts(const Tensor& starts, int64_t sample, int64_t queries)
      : starts_(starts ? starts.as<int32_t>() + sample * queries : nullptr) {}
  int64_t of(int64_t query) const { return starts_ == nullptr ? 0 : starts_[query]; }

 private:
  const int32_t* starts_;
};

// The random draws of one (sample, head).
template <class M>
struct WeightDropout {
  uint64_t key;
  uint32_t threshold;
  M scale;
  int64_t channel;  // of key 0

  WeightDropout(const AttentionForward& args, int64_t sample, int64_t head, int64_t key_length)
      : key(key_of_sample(args.dropout, sample)),
        threshold(dropout_threshold(args.dropout.probability)),
        scale(static_cast<M>(1.0 / (1.0 - args.dropout.probability))),
        channel((args.head_offset + head) * (args.dropout_keys == 0 ? key_length : args.dropout_keys)) {}

  void draw(int64_t position, int64_t first_key, int64_t count, M* factors) const {
    keep_factors(key, position, channel + first_key, count, threshold, scale, factors);
  }
};

struct AttentionSizes {
  int64_t queries, keys, dim, group;

  explicit AttentionSizes(const AttentionForward& args)
      : queries(args.q.rows() / args.batch),
        keys(args.k.rows() / args.batch),
        dim(args.q.cols() / args.heads),
        group(args.heads / args.kv_heads) {}
};

}  // namespace megalith::ops::cpu
