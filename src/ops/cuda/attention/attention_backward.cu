#include "ops/cuda/attention/attention_tiles.cuh"
#include "ops/cuda/reduce.cuh"

// The backward pass on the tensor cores. One kernel owns keys and sums up dk and dv over the queries of all heads that
// read them. In a fixed order, another owns queries and sums up dq, and both compute the weights anew; else the first
// adds to dq with atomics. A warp owns 16 rows; tiles of the other side arrive while the last are worked on.

namespace megalith::ops::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kWarpRows = 16;
static_assert(kWarps * kWarpRows == kTile);

template <int kDim>
constexpr int kTileBytes = kTile* kRowBytes<kDim>;

// Two tiles that stay, and two stages of two tiles that pass.
template <int kDim>
constexpr int kSharedBytes = 6 * kTileBytes<kDim>;

using Scores = float[1][kBlocks][4];

template <int kDim>
using Sums = float[1][kDim / 8][4];

template <int kDim>
__device__ __forceinline__ void clear(Sums<kDim>& sums) {
#pragma unroll
  for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[0][n][e] = 0.0F;
  }
}

__device__ __forceinline__ bool bit_of(uint32_t bits, int n, int e) {
  return (bits >> (4 * n + e) & 1u) != 0;
}

// delta = dout . out of each query and head: each warp takes kItems of them, so that enough loads are in flight.
constexpr int kItems = 4;

__global__ void __launch_bounds__(kThreads) delta_kernel(const AttentionBackwardLaunch<Bf16Bits> args) {
  constexpr int kPairs = kMaxTensorCoreDim / 64;  // of neighbouring elements, per lane
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32) * kItems;
  const int64_t items = static_cast<int64_t>(args.batch) * args.queries * args.heads;
  uint32_t a[kItems][kPairs];
  uint32_t b[kItems][kPairs];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int64_t row = (first + i) / args.heads;
    const int head = static_cast<int>((first + i) % args.heads);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const int d = 64 * j + 2 * lane;
      const bool exists = first + i < items && d < args.dim;
      a[i][j] = exists ? *reinterpret_cast<const uint32_t*>(head_of(args.dout, row, head, args.dim).data + d) : 0;
      b[i][j] = exists ? *reinterpret_cast<const uint32_t*>(head_of(args.out, row, head, args.dim).data + d) : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    float sum = 0.0F;
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      sum = fmaf(__uint_as_float(a[i][j] << 16), __uint_as_float(b[i][j] << 16), sum);
      sum = fmaf(__uint_as_float(a[i][j] & 0xffff0000u), __uint_as_float(b[i][j] & 0xffff0000u), sum);
    }
    sum = warp_sum(sum);
    if (lane != 0 || first + i >= items) continue;
    const int64_t row = (first + i) / args.heads;
    const int64_t stats_row = row / args.queries * args.heads + (first + i) % args.heads;
    args.delta[stats_row * args.queries + row % args.queries] = sum;
  }
}

template <int kDim, bool kDropout>
__global__ void __launch_bounds__(kThreads, kDim <= 64 ? 3 : 2)
    dq_kernel(const AttentionBackwardLaunch<Bf16Bits> args) {
  extern __shared__ __align__(16) uint8_t memory[];
  const uint32_t q_tile = shared_address(memory);
  const uint32_t dout_tile = q_tile + kTileBytes<kDim>;
  const uint32_t stages = dout_tile + kTileBytes<kDim>;  // keys and values, twice

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int kv_head = head / (args.heads / args.kv_heads);
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTile;
  const int warp_query = first_query + warp * kWarpRows;
  const int position = args.query_offset + warp_query;  // of the warp's first row
  const int64_t first_row = static_cast<int64_t>(sample) * args.queries;
  const auto k = head_of(args.k, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const auto v = head_of(args.v, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const auto start_of = [&](int query) { return document_start(args.document_starts, sample, args.queries, query); };
  TileDropout dropout;
  if constexpr (kDropout) dropout = tile_dropout(args.dropout, sample, head);

  float log2_sum[2];
  float delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = min(warp_query + lane_row() + half * 8, args.queries - 1);
    const int64_t row = static_cast<int64_t>(sample) * args.heads + head;
    log2_sum[half] = args.log_sum_exp.data[row * args.log_sum_exp.stride + query] * kLog2E;
    delta[half] = args.delta[row * args.queries + query];
  }
  const int first_start = start_of(warp_query);
  const int last_start = start_of(warp_query + kWarpRows - 1);
  const float scale_log2 = args.scale * kLog2E;
  const int end_key = args.query_offset + min(first_query + kTile, args.queries);

  const auto load_stage = [&](int stage, int key) {
    const uint32_t tile = stages + stage * 2 * kTileBytes<kDim>;
    load_tile<kDim, kTile, kThreads>(tile, k, key, args.keys, args.dim);
    load_tile<kDim, kTile, kThreads>(tile + kTileBytes<kDim>, v, key, args.keys, args.dim);
    commit_copies();
  };
  Sums<kDim> dq;
  clear<kDim>(dq);
  int key = start_of(first_query) / kTile * kTile;
  load_tile<kDim, kTile, kThreads>(q_tile, head_of(args.q, first_row, head, args.dim), first_query, args.queries,
                                   args.dim);
  load_tile<kDim, kTile, kThreads>(dout_tile, head_of(args.dout, first_row, head, args.dim), first_query, args.queries,
                                   args.dim);
  load_stage(0, key);
  for (int stage = 0; key < end_key; key += kTile, stage ^= 1) {
    uint32_t kept = 0;
    if constexpr (kDropout) kept = dropout.keep_queries_by_keys(position, key);  // while copies are under way
    wait_for_copies();
    __syncthreads();  // this stage is there, and the other is no longer used
    if (key + kTile < end_key) load_stage(stage ^ 1, key + kTile);
    if (first_start >= key + kTile) continue;  // no row of the warp sees these keys
    const uint32_t k_tile = stages + stage * 2 * kTileBytes<kDim>;
    Scores weights;
    Scores gradients;
    multiply_rows<kDim, 1>(weights, q_tile + warp * kWarpRows * kRowBytes<kDim>, k_tile);
    multiply_rows<kDim, 1>(gradients, dout_tile + warp * kWarpRows * kRowBytes<kDim>, k_tile + kTileBytes<kDim>);
    int begin[2] = {0, 0};  // the keys of the tile that each row sees
    int end[2] = {kTile, kTile};
    if (key + kTile - 1 > position || key < last_start) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = lane_row() + half * 8;
        begin[half] = start_of(warp_query + row) - key;
        end[half] = position + row + 1 - key;
      }
    }
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = 8 * n + 2 * lane_pair() + e % 2;
        const bool is_seen = begin[e / 2] <= column && column < end[e / 2];
        const float weight = is_seen ? exp2f(fmaf(weights[0][n][e], scale_log2, -log2_sum[e / 2])) : 0.0F;
        float gradient = gradients[0][n][e];
        if constexpr (kDropout) gradient = bit_of(kept, n, e) ? gradient * args.dropout.factor : 0.0F;
        gradients[0][n][e] = weight * (gradient - delta[e / 2]);
      }
    }
    WeightParts<1> parts;
    pack_weights<1>(parts, gradients);
    add_product<kDim, 1>(dq, parts, k_tile);
  }
  const float factors[1][2] = {{args.scale, args.scale}};
  store_sums<kDim, 1>(dq, factors, memory + warp * kWarpRows * kRowBytes<kDim>,
                      head_of(args.dq, first_row, head, args.dim), warp_query, args.queries, args.dim);
}

// What the kernel for dk and dv knows about the queries of a stage.
struct QueryStats {
  float log_sum_exp[kTile];
  float delta[kTile];
  int start[kTile];  // not set where a sample is one document
};

// The first query that sees the key, if it exists.
__device__ __forceinline__ int first_query_of(const AttentionBackwardLaunch<Bf16Bits>& args, int key) {
  return max(0, key - args.query_offset);
}

// The first tile of queries, counted from the first that sees `first_key`, that no longer sees any of kTile keys:
// starts do not fall.
__device__ __forceinline__ int end_of_queries(const AttentionBackwardLaunch<Bf16Bits>& args, int sample,
                                              int first_key) {
  const int first_query = first_query_of(args, first_key);
  const int tiles = first_query < args.queries ? (args.queries - first_query + kTile - 1) / kTile : 0;
  if (args.document_starts == nullptr) return tiles;
  int low = 0;
  int high = tiles;
  while (low < high) {
    const int middle = (low + high) / 2;
    const int start = document_start(args.document_starts, sample, args.queries, first_query + middle * kTile);
    start >= first_key + kTile ? high = middle : low = middle + 1;
  }
  return low;
}

// The gradients of a tile of scores, keys by queries, where all warps can read them.
constexpr int kGradientRowBytes = (kTile + 8) * static_cast<int>(sizeof(Bf16Bits));
constexpr int kGradientBytes = kTile * kGradientRowBytes;

template <int kDim>
constexpr int kGradientsAt = kSharedBytes<kDim> + 2 * static_cast<int>(sizeof(QueryStats));

// Stores the gradients of the warp's 16 keys.
__device__ __forceinline__ void share_gradients(const WeightParts<1>& parts, uint8_t* gradients) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  uint8_t* row = gradients + (warp * kWarpRows + lane_row()) * kGradientRowBytes + lane_pair() * 4;
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) {
    *reinterpret_cast<uint32_t*>(row + n * 16) = parts[0][n / 2][n % 2 * 2];
    *reinterpret_cast<uint32_t*>(row + 8 * kGradientRowBytes + n * 16) = parts[0][n / 2][n % 2 * 2 + 1];
  }
}

// Loads those of the warp's 16 queries, as the left factor of a product with the keys.
__device__ __forceinline__ void take_gradients(WeightParts<1>& parts, uint32_t gradients) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t address = gradients + (lane % 8 + lane / 16 * 8) * kGradientRowBytes + lane / 8 % 2 * 16 +
                           warp * kWarpRows * static_cast<int>(sizeof(Bf16Bits));
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k) load_matrices_transposed(parts[0][k], address + k * 16 * kGradientRowBytes);
}

template <int kDim>
__device__ __forceinline__ void add_dq(const Sums<kDim>& dq, const AttentionRows<float>& sums, int first, int limit,
                                       int dim) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = first + lane_row() + half * 8;
    if (query >= limit) continue;
    float* row = sums.data + query * sums.stride + 2 * lane_pair();
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      if (8 * n < dim) add_to_global(row + 8 * n, dq[0][n][2 * half], dq[0][n][2 * half + 1]);
    }
  }
}

// A tile of queries of one of the heads that read the keys, counted from the first query that sees them.
struct Step {
  int head;
  int tile;
};

// Scores are computed with keys as rows, so that weights come out as the left factor of the products for dk and dv.
template <int kDim, bool kDropout, bool kAddsDq>
__global__ void __launch_bounds__(kThreads, 2) dkv_kernel(const AttentionBackwardLaunch<Bf16Bits> args) {
  extern __shared__ __align__(16) uint8_t memory[];
  const uint32_t k_tile = shared_address(memory);
  const uint32_t v_tile = k_tile + kTileBytes<kDim>;
  const uint32_t stages = v_tile + kTileBytes<kDim>;  // queries and their gradients, twice
  const auto* stats = reinterpret_cast<const QueryStats*>(memory + kSharedBytes<kDim>);  // of both stages

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int kv_head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int group = args.heads / args.kv_heads;
  const int first_key = static_cast<int>(blockIdx.x) * kTile;
  const int warp_key = first_key + warp * kWarpRows;
  const int64_t first_row = static_cast<int64_t>(sample) * args.keys;
  const int64_t first_query_row = static_cast<int64_t>(sample) * args.queries;
  const int tiles = end_of_queries(args, sample, first_key);
  const float scale_log2 = args.scale * kLog2E;
  TileDropout dropout;
  if constexpr (kDropout) dropout = tile_dropout(args.dropout, sample, kv_head * group);

  const auto load_stage = [&](int stage, const Step& step) {
    const int head = step.head;
    const int first_query = first_query_of(args, first_key) + step.tile * kTile;
    const uint32_t tile = stages + stage * 2 * kTileBytes<kDim>;
    load_tile<kDim, kTile, kThreads>(tile, head_of(args.q, first_query_row, head, args.dim), first_query, args.queries,
                                     args.dim);
    load_tile<kDim, kTile, kThreads>(tile + kTileBytes<kDim>, head_of(args.dout, first_query_row, head, args.dim),
                                     first_query, args.queries, args.dim);
    if (threadIdx.x < kTile) {
      const int query = min(first_query + static_cast<int>(threadIdx.x), args.queries - 1);
      const int64_t row = static_cast<int64_t>(sample) * args.heads + head;
      const QueryStats& to = stats[stage];
      copy_word_async(shared_address(to.log_sum_exp + threadIdx.x),
                      args.log_sum_exp.data + row * args.log_sum_exp.stride + query);
      copy_word_async(shared_address(to.delta + threadIdx.x), args.delta + row * args.queries + query);
      if (args.document_starts != nullptr) {
        copy_word_async(shared_address(to.start + threadIdx.x), args.document_starts + first_query_row + query);
      }
    }
    commit_copies();
  };
  Sums<kDim> dk;
  Sums<kDim> dv;
  clear<kDim>(dk);
  clear<kDim>(dv);
  Step step{kv_head * group, 0};
  const int end_head = tiles > 0 ? step.head + group : step.head;
  if (tiles > 0) {  // else no query sees these keys, and no copy may be under way when their gradients are stored
    load_tile<kDim, kTile, kThreads>(k_tile, head_of(args.k, first_row, kv_head, args.dim), first_key, args.keys,
                                     args.dim);
    load_tile<kDim, kTile, kThreads>(v_tile, head_of(args.v, first_row, kv_head, args.dim), first_key, args.keys,
                                     args.dim);
    load_stage(0, step);
  }
  for (int stage = 0; step.head < end_head; stage ^= 1) {
    const int head = step.head;
    const int first_query = first_query_of(args, first_key) + step.tile * kTile;
    const int first_position = args.query_offset + first_query;
    uint32_t kept = 0;
    if constexpr (kDropout) {  // while copies are under way
      TileDropout of_head = dropout;
      of_head.channel = first_channel(args.dropout, head);
      kept = of_head.keep_keys_by_queries(warp_key, first_position);
    }
    wait_for_copies();
    __syncthreads();  // this stage is there, and the other is no longer used
    step = step.tile + 1 < tiles ? Step{head, step.tile + 1} : Step{head + 1, 0};
    if (step.head < end_head) load_stage(stage ^ 1, step);
    const uint32_t q_tile = stages + stage * 2 * kTileBytes<kDim>;
    const uint32_t dout_tile = q_tile + kTileBytes<kDim>;
    Scores weights;
    Scores gradients;
    multiply_rows<kDim, 1>(weights, k_tile + warp * kWarpRows * kRowBytes<kDim>, q_tile);
    multiply_rows<kDim, 1>(gradients, v_tile + warp * kWarpRows * kRowBytes<kDim>, dout_tile);
    const bool is_masked =
        first_position < first_key + kTile - 1 || first_query + kTile > args.queries || args.document_starts != nullptr;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int column = 8 * n + 2 * lane_pair() + odd;
        const int position = first_position + column;
        const bool exists = first_query + column < args.queries;
        const float log2_sum = stats[stage].log_sum_exp[column] * kLog2E;
        const float delta = stats[stage].delta[column];
        const int start = args.document_starts != nullptr ? stats[stage].start[column] : 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int e = 2 * half + odd;
          const int key = warp_key + lane_row() + half * 8;
          const bool is_seen = !is_masked || (key <= position && key >= start && exists);
          const float weight = is_seen ? exp2f(fmaf(weights[0][n][e], scale_log2, -log2_sum)) : 0.0F;
          float gradient = gradients[0][n][e];
          weights[0][n][e] = weight;
          if constexpr (kDropout) {
            const bool is_kept = bit_of(kept, n, e);
            weights[0][n][e] = is_kept ? weight : 0.0F;
            gradient = is_kept ? gradient * args.dropout.factor : 0.0F;
          }
          gradients[0][n][e] = weight * (gradient - delta);
        }
      }
    }
    WeightParts<1> parts;
    pack_weights<1>(parts, weights);
    add_product<kDim, 1>(dv, parts, dout_tile);
    pack_weights<1>(parts, gradients);
    add_product<kDim, 1>(dk, parts, q_tile);
    if constexpr (kAddsDq) {
      share_gradients(parts, memory + kGradientsAt<kDim>);
      __syncthreads();
      take_gradients(parts, k_tile + kGradientsAt<kDim>);
      Sums<kDim> dq;
      clear<kDim>(dq);
      add_product<kDim, 1>(dq, parts, k_tile);
      const AttentionRows<float> sums{args.dq_sums, static_cast<int64_t>(args.heads) * args.dim};
      add_dq<kDim>(dq, head_of(sums, first_query_row, head, args.dim), first_query + warp * kWarpRows, args.queries,
                   args.dim);
    }
  }
  if constexpr (kAddsDq) __syncthreads();  // all warps have used all keys
  const float dk_factors[1][2] = {{args.scale, args.scale}};
  const float dv_factors[1][2] = {{args.dropout.factor, args.dropout.factor}};
  uint8_t* staging = memory + warp * kWarpRows * kRowBytes<kDim>;
  store_sums<kDim, 1>(dk, dk_factors, staging, head_of(args.dk, first_row, kv_head, args.dim), warp_key, args.keys,
                      args.dim);
  store_sums<kDim, 1>(dv, dv_factors, staging + kTileBytes<kDim>, head_of(args.dv, first_row, kv_head, args.dim),
                      warp_key, args.keys, args.dim);
}

// dq = scale * dq_sums, eight elements per thread.
__global__ void __launch_bounds__(kThreads) round_dq_kernel(const AttentionBackwardLaunch<Bf16Bits> args) {
  const int64_t cols = static_cast<int64_t>(args.heads) * args.dim;
  const int64_t index = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 8;
  const int64_t row = index / cols;
  if (row >= static_cast<int64_t>(args.batch) * args.queries) return;
  const float4 a = reinterpret_cast<const float4*>(args.dq_sums + index)[0];
  const float4 b = reinterpret_cast<const float4*>(args.dq_sums + index)[1];
  *reinterpret_cast<uint4*>(args.dq.data + row * args.dq.stride + index % cols) =
      make_uint4(pack(a.x * args.scale, a.y * args.scale), pack(a.z * args.scale, a.w * args.scale),
                 pack(b.x * args.scale, b.y * args.scale), pack(b.z * args.scale, b.w * args.scale));
}

// A block for each tile of `rows` rows, and each head.
cudaError_t launch(void (*kernel)(AttentionBackwardLaunch<Bf16Bits>), int rows, int heads, int shared_bytes,
                   const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>((rows + kTile - 1) / kTile), static_cast<unsigned>(heads),
                  static_cast<unsigned>(args.batch));
  kernel<<<grid, kThreads, shared_bytes, stream>>>(args);
  return cudaGetLastError();
}

template <int kDim, bool kDropout>
cudaError_t launch_in_fixed_order(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  const cudaError_t status =
      launch(dkv_kernel<kDim, kDropout, false>, args.keys, args.kv_heads, kGradientsAt<kDim>, args, stream);
  if (status != cudaSuccess) return status;
  return launch(dq_kernel<kDim, kDropout>, args.queries, args.heads, kSharedBytes<kDim>, args, stream);
}

template <int kDim, bool kDropout>
cudaError_t launch_with_atomics(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  const int64_t elements = static_cast<int64_t>(args.batch) * args.queries * args.heads * args.dim;
  cudaError_t status = cudaMemsetAsync(args.dq_sums, 0, static_cast<size_t>(elements) * sizeof(float), stream);
  if (status != cudaSuccess) return status;
  status = launch(dkv_kernel<kDim, kDropout, true>, args.keys, args.kv_heads, kGradientsAt<kDim> + kGradientBytes, args,
                  stream);
  if (status != cudaSuccess) return status;
  const int64_t blocks = (elements / 8 + kThreads - 1) / kThreads;
  round_dq_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launch_delta(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  const int64_t items = static_cast<int64_t>(args.batch) * args.queries * args.heads;
  const int64_t blocks = (items + kWarps * kItems - 1) / (kWarps * kItems);
  delta_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

template <int kDim>
cudaError_t launch_for(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  const cudaError_t status = launch_delta(args, stream);
  if (status != cudaSuccess) return status;
  const bool has_dropout = args.dropout.threshold != 0;
  if (args.dq_sums == nullptr) {
    return has_dropout ? launch_in_fixed_order<kDim, true>(args, stream)
                       : launch_in_fixed_order<kDim, false>(args, stream);
  }
  return has_dropout ? launch_with_atomics<kDim, true>(args, stream) : launch_with_atomics<kDim, false>(args, stream);
}

}  // namespace

cudaError_t launch_tensor_cores(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  if (args.dim <= 64) return launch_for<64>(args, stream);
  if (args.dim <= 80) return launch_for<80>(args, stream);
  if (args.dim <= 96) return launch_for<96>(args, stream);
  return launch_for<128>(args, stream);
}

}  // namespace megalith::ops::cuda
