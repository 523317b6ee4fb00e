#pragma once

#include "ops/cuda/attention/attention_random.cuh"

// What the tensor-core kernels of attention share: tiles of bf16 rows in shared memory, products of tiles by a warp
// (mma.m16n8k16, sums in fp32), and the dropout decisions of a tile of scores.
//
// A warp holds a 16 x 8 block of sums as C[4] per lane: with row = lane / 4 and pair = lane % 4, elements 0 and 1 are
// columns 2 * pair and 2 * pair + 1 of that row, elements 2 and 3 the same columns of row + 8.

namespace megalith::ops::cuda {

constexpr int kTile = 64;           // queries or keys in a tile of scores
constexpr int kBlocks = kTile / 8;  // blocks of 8 columns in it
constexpr float kLog2E = 1.4426950408889634F;
constexpr float kMinusInfinity = -__builtin_huge_valf();

__device__ __forceinline__ int lane_row() {
  return static_cast<int>(threadIdx.x) % 32 / 4;
}
__device__ __forceinline__ int lane_pair() {
  return static_cast<int>(threadIdx.x) % 4;
}

// Rows are 16 bytes longer than their kDim elements: an odd number of 16-byte pieces, so that the eight rows of a
// matrix that ldmatrix reads lie in different banks.
template <int kDim>
constexpr int kTileStride = kDim + 8;
template <int kDim>
constexpr int kRowBytes = kTileStride<kDim>* static_cast<int>(sizeof(Bf16Bits));

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory, or zeros.
__device__ __forceinline__ void copy_async(uint32_t to, const void* from, bool exists) {
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_word_async(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Begins to copy kRows rows from `first` on; what lies beyond row `limit` or column `dim` becomes zero.
template <int kDim, int kRows, int kThreads>
__device__ __forceinline__ void load_tile(uint32_t tile, AttentionRows<const Bf16Bits> rows, int first, int limit,
                                          int dim) {
  constexpr int kPieces = kDim / 8;
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kThreads % kPieces == 0) {  // a thread stays in its column
    constexpr int kStep = kThreads / kPieces;
    static_assert(kRows % kStep == 0);
    const int row = thread / kPieces;
    const int col = thread % kPieces * 8;
    const int left = col < dim ? limit - first - row : 0;  // rows to copy
    const Bf16Bits* from = rows.data + (first + row) * rows.stride + col;
    const uint32_t to = tile + row * kRowBytes<kDim> + col * 2;
    const int64_t step = kStep * rows.stride;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      const bool exists = i * kStep < left;
      copy_async(to + i * kStep * kRowBytes<kDim>, exists ? from : rows.data, exists);
      from += step;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kRows * kPieces; i += kThreads) {
      const int row = (i + thread) / kPieces;
      const int col = (i + thread) % kPieces * 8;
      const bool exists = first + row < limit && col < dim;
      const Bf16Bits* from = exists ? rows.data + (first + row) * rows.stride + col : rows.data;
      copy_async(tile + row * kRowBytes<kDim> + col * 2, from, exists);
    }
    static_assert(kRows * kPieces % kThreads == 0);
  }
}

// The columns of one head of the rows of one sample.
template <class T>
__device__ __forceinline__ AttentionRows<T> head_of(AttentionRows<T> rows, int64_t first_row, int head, int dim) {
  return {rows.data + first_row * rows.stride + static_cast<int64_t>(head) * dim, rows.stride};
}

__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}

// c (16 x 8) += a (16 x 16) b (16 x 8).
__device__ __forceinline__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two values as bf16, the first in the low half.
__device__ __forceinline__ uint32_t pack(float first, float second) {
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

// scores = A B^T: 16 * kM rows of the tile `a` against the kTile rows of the tile `b`.
template <int kDim, int kM>
__device__ __forceinline__ void multiply_rows(float (&scores)[kM][kBlocks][4], uint32_t a, uint32_t b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t a_lane = a + lane % 16 * kRowBytes<kDim> + lane / 16 * 16;
  const uint32_t b_lane = b + (lane % 8 + lane / 16 * 8) * kRowBytes<kDim> + lane / 8 % 2 * 16;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[m][n][e] = 0.0F;
    }
  }
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    uint32_t a_part[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) load_matrices(a_part[m], a_lane + m * 16 * kRowBytes<kDim> + k * 32);
#pragma unroll
    for (int n = 0; n < kBlocks; n += 2) {
      uint32_t b_part[4];
      load_matrices(b_part, b_lane + n * 8 * kRowBytes<kDim> + k * 32);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(scores[m][n], a_part[m], b_part[0], b_part[1]);
        multiply_add(scores[m][n + 1], a_part[m], b_part[2], b_part[3]);
      }
    }
  }
}

// Weights of a tile of scores as the left factor of a product: two neighbouring 16 x 8 blocks are one 16 x 16 block.
template <int kM>
using WeightParts = uint32_t[kM][kBlocks / 2][4];

template <int kM>
__device__ __forceinline__ void pack_weights(WeightParts<kM>& parts, const float (&weights)[kM][kBlocks][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      parts[m][n / 2][n % 2 * 2] = pack(weights[m][n][0], weights[m][n][1]);
      parts[m][n / 2][n % 2 * 2 + 1] = pack(weights[m][n][2], weights[m][n][3]);
    }
  }
}

// sums += weights B, with the kTile rows of the tile `b`.
template <int kDim, int kM>
__device__ __forceinline__ void add_product(float (&sums)[kM][kDim / 8][4], const WeightParts<kM>& weights,
                                            uint32_t b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t b_lane = b + lane % 16 * kRowBytes<kDim> + lane / 16 * 16;
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k) {
#pragma unroll
    for (int n = 0; n < kDim / 8; n += 2) {
      uint32_t b_part[4];
      load_matrices_transposed(b_part, b_lane + k * 16 * kRowBytes<kDim> + n * 16);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(sums[m][n], weights[m][k], b_part[0], b_part[1]);
        multiply_add(sums[m][n + 1], weights[m][k], b_part[2], b_part[3]);
      }
    }
  }
}

// Adds two neighbouring sums to global memory, in whatever order blocks come.
__device__ __forceinline__ void add_to_global(float* at, float first, float second) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(first), "f"(second) : "memory");
#else
  atomicAdd(at, first);
  atomicAdd(at + 1, second);
#endif
}

// Writes a warp's sums, each row times its factor, to the rows from `first` on that lie below `limit`. They go through
// `tile`, 16 * kM rows of shared memory that only this warp uses, so that global memory is written 16 bytes at a time.
template <int kDim, int kM>
__device__ __forceinline__ void store_sums(const float (&sums)[kM][kDim / 8][4], const float (&factors)[kM][2],
                                           uint8_t* tile, AttentionRows<Bf16Bits> rows, int first, int limit, int dim) {
  constexpr int kPieces = kDim / 8;
  __syncwarp();
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    uint8_t* row = tile + (m * 16 + lane_row()) * kRowBytes<kDim> + lane_pair() * 4;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      const float(&c)[4] = sums[m][n];
      *reinterpret_cast<uint32_t*>(row + n * 16) = pack(c[0] * factors[m][0], c[1] * factors[m][0]);
      *reinterpret_cast<uint32_t*>(row + 8 * kRowBytes<kDim> + n * 16) =
          pack(c[2] * factors[m][1], c[3] * factors[m][1]);
    }
  }
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x) % 32; i < 16 * kM * kPieces; i += 32) {
    const int row = i / kPieces;
    const int col = i % kPieces * 8;
    if (first + row >= limit || col >= dim) continue;
    *reinterpret_cast<uint4*>(rows.data + (first + row) * rows.stride + col) =
        *reinterpret_cast<const uint4*>(tile + row * kRowBytes<kDim> + col * 2);
  }
}

// Where the elements of a lane lie along one side of a tile of scores: element e of block n at
// first + e / 2 * half + e % 2 * odd + n * block.
struct ElementSteps {
  int first, half, odd, block;

  __device__ __forceinline__ int of(int element) const {
    return first + element / 2 % 2 * half + element % 2 * odd + element / 4 * block;
  }
};

// Dropout decisions with one Philox call for each; bit 4 * n + e is element e of block n.
static __device__ __noinline__ uint32_t keep_one_by_one(uint64_t key, uint32_t threshold, int64_t channel,
                                                        ElementSteps queries, ElementSteps keys) {
  uint32_t bits = 0;
#pragma unroll 1
  for (int i = 0; i < 4 * kBlocks; ++i) {
    bits |= (is_kept(key, threshold, channel + keys.of(i), queries.of(i)) ? 1u : 0u) << i;
  }
  return bits;
}

// The dropout decisions of one head. Four neighbouring keys share a Philox call where its channel is a multiple of 4;
// each lane then makes one call per 16 x 8 block, and lanes exchange bits. Bit 4 * n + e is element e of block n.
struct TileDropout {
  uint64_t key = 0;
  uint32_t threshold = 0;
  int64_t channel = 0;  // of key 0

  // Rows are queries (the first at `position`), columns are keys from `first_key` on, a multiple of 4.
  __device__ __forceinline__ uint32_t keep_queries_by_keys(int position, int first_key) const {
    const int pair = lane_pair();
    if (channel % 4 != 0) {
      return keep_one_by_one(key, threshold, channel, {position + lane_row(), 8, 0, 0},
                             {first_key + 2 * pair, 0, 1, 8});
    }
    // The even lane of two draws for row, the odd one for row + 8, both for the four keys that they share.
    const auto group = static_cast<uint32_t>((channel + first_key) / 4 + pair / 2);
    const int row = position + lane_row() + pair % 2 * 8;
    uint32_t mine = 0;
#pragma unroll 4
    for (int n = 0; n < kBlocks; ++n) mine |= kept_of_four(key, threshold, group + 2 * n, row) << (4 * n);
    const uint32_t other = __shfl_xor_sync(0xffffffffu, mine, 1);
    return pair % 2 == 0 ? (mine & 0x33333333u) | (other & 0x33333333u) << 2
                         : (other >> 2 & 0x33333333u) | (mine & 0xccccccccu);
  }

  // Rows are keys from `first_key` on, a multiple of 4; columns are queries (the first at `position`).
  __device__ __forceinline__ uint32_t keep_keys_by_queries(int first_key, int position) const {
    const int row = lane_row();
    const int pair = lane_pair();
    if (channel % 4 != 0) {
      return keep_one_by_one(key, threshold, channel, {position + 2 * pair, 0, 1, 8}, {first_key + row, 8, 0, 0});
    }
    // The four lanes whose rows differ in row % 4 see the same four keys, and the four above those by 8, of two
    // queries: four calls, one for each lane.
    const int turn = row % 4;
    const auto group = static_cast<uint32_t>((channel + first_key) / 4 + row / 4 + turn / 2 * 2);
    const int column = position + 2 * pair + turn % 2;
    uint32_t mine = 0;
#pragma unroll 4
    for (int n = 0; n < kBlocks; ++n) mine |= kept_of_four(key, threshold, group, column + 8 * n) << (4 * n);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    uint32_t bits = 0;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const uint32_t drawn = __shfl_sync(0xffffffffu, mine, (lane & ~12) | e << 2);
      bits |= (drawn >> turn & 0x11111111u) << e;
    }
    return bits;
  }
};

__device__ __forceinline__ TileDropout tile_dropout(const AttentionDropout& dropout, int sample, int head) {
  return {sample_key(dropout, sample), dropout.threshold, first_channel(dropout, head)};
}

// Where the document of a query begins; queries that do not exist belong to the last one.
__device__ __forceinline__ int document_start(const int32_t* document_starts, int sample, int queries, int query) {
  if (document_starts == nullptr) return 0;
  return document_starts[static_cast<int64_t>(sample) * queries + min(query, queries - 1)];
}

}  // namespace megalith::ops::cuda
