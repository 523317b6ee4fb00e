#include "ops/cuda/attention/attention_tiles.cuh"

// The forward pass on the tensor cores (Dao, "FlashAttention-2", 2023): a block owns kQueries queries of one head, a
// warp 32 of them, and walks over the keys that they see. While a warp multiplies with keys, their values arrive; while
// it works on these, the next keys do.

namespace megalith::ops::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kM = 2;  // blocks of 16 rows in a warp
constexpr int kWarpRows = 16 * kM;
constexpr int kQueries = kWarps * kWarpRows;

template <int kDim>
constexpr int kSharedBytes = (kQueries + 2 * kTile) * kRowBytes<kDim>;

// The running softmax of the rows of one lane (Milakov and Gimelshein, "Online normalizer calculation", 2018).
struct RowStates {
  float maximum[kM][2];  // that weights are relative to
  float sum[kM][2];      // over this lane's columns
};

using Scores = float[kM][kBlocks][4];

__device__ __forceinline__ float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// `position` is that of the warp's first row; start_of(row) is where the document of a row of the warp begins.
template <class StartOf>
__device__ __forceinline__ void mask_scores(Scores& scores, int first_key, int position, const StartOf& start_of) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * m + lane_row() + half * 8;
      const int begin = start_of(row) - first_key;
      const int end = position + row - first_key;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const int key = 8 * n + 2 * lane_pair() + odd;
          if (key < begin || key > end) scores[m][n][2 * half + odd] = kMinusInfinity;
        }
      }
    }
  }
}

// Weights are relative to a row's maximum, or to an earlier one that is less than 2^kSlack below: sums stay far from
// overflow, and earlier sums are seldom to be brought to a new maximum.
constexpr float kSlack = 8.0F;

template <int kDim>
__device__ __forceinline__ void raise_maxima(const float (&maxima)[kM][2], RowStates& states,
                                             float (&out)[kM][kDim / 8][4], float scale_log2) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float maximum = fmaxf(states.maximum[m][half], maxima[m][half]);
      const float base = maximum == kMinusInfinity ? 0.0F : maximum;  // a row that has seen no key yet
      const float correction = exp2f((states.maximum[m][half] - base) * scale_log2);
      states.maximum[m][half] = maximum;
      states.sum[m][half] *= correction;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        out[m][n][2 * half] *= correction;
        out[m][n][2 * half + 1] *= correction;
      }
    }
  }
}

// Scores to weights.
template <int kDim>
__device__ __forceinline__ void absorb_scores(Scores& scores, RowStates& states, float (&out)[kM][kDim / 8][4],
                                              float scale_log2) {
  float maxima[kM][2];
  bool is_above = false;
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float maximum = kMinusInfinity;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        maximum = fmaxf(maximum, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      }
      maxima[m][half] = quad_max(maximum);
      is_above |= (maxima[m][half] - states.maximum[m][half]) * scale_log2 > kSlack;
    }
  }
  if (__any_sync(0xffffffffu, is_above)) raise_maxima<kDim>(maxima, states, out, scale_log2);
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float maximum = states.maximum[m][half];
      const float base = maximum == kMinusInfinity ? 0.0F : maximum * scale_log2;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[m][n][e] = exp2f(fmaf(scores[m][n][e], scale_log2, -base));
          states.sum[m][half] += scores[m][n][e];
        }
      }
    }
  }
}

__device__ __forceinline__ void drop_weights(Scores& weights, const uint32_t (&kept)[kM]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) weights[m][n][e] = (kept[m] >> (4 * n + e) & 1u) != 0 ? weights[m][n][e] : 0.0F;
    }
  }
}

template <int kDim, bool kDropout>
__global__ void __launch_bounds__(kThreads, 2) forward_kernel(const AttentionForwardLaunch<Bf16Bits> args) {
  extern __shared__ __align__(16) uint8_t memory[];
  const uint32_t q_tile = shared_address(memory);
  const uint32_t k_tile = q_tile + kQueries * kRowBytes<kDim>;
  const uint32_t v_tile = k_tile + kTile * kRowBytes<kDim>;

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int kv_head = head / (args.heads / args.kv_heads);
  // The last queries see most keys: start with them.
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  const int warp_query = first_query + warp * kWarpRows;
  const int position = args.query_offset + warp_query;  // of the warp's first row
  const auto q = head_of(args.q, static_cast<int64_t>(sample) * args.queries, head, args.dim);
  const auto k = head_of(args.k, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const auto v = head_of(args.v, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const auto start_of = [&](int query) { return document_start(args.document_starts, sample, args.queries, query); };

  RowStates states;
  float out[kM][kDim / 8][4];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      states.maximum[m][half] = kMinusInfinity;
      states.sum[m][half] = 0.0F;
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) out[m][n][e] = 0.0F;
    }
  }
  const int first_start = start_of(warp_query);
  const int last_start = start_of(warp_query + kWarpRows - 1);
  TileDropout dropout;
  if constexpr (kDropout) dropout = tile_dropout(args.dropout, sample, head);

  const float scale_log2 = args.scale * kLog2E;
  const int end_key = args.query_offset + min(first_query + kQueries, args.queries);
  int key = start_of(first_query) / kTile * kTile;
  load_tile<kDim, kQueries, kThreads>(q_tile, q, first_query, args.queries, args.dim);
  load_tile<kDim, kTile, kThreads>(k_tile, k, key, args.keys, args.dim);
  commit_copies();
  for (; key < end_key; key += kTile) {
    const bool is_seen = key < position + kWarpRows && first_start < key + kTile;
    uint32_t kept[kM] = {};
    if constexpr (kDropout) {  // drawn here, while copies are under way and few registers are in use
      if (is_seen) {
#pragma unroll
        for (int m = 0; m < kM; ++m) kept[m] = dropout.keep_queries_by_keys(position + 16 * m, key);
      }
    }
    Scores scores;
    wait_for_copies();
    __syncthreads();  // the keys are there, and the last values are no longer used
    load_tile<kDim, kTile, kThreads>(v_tile, v, key, args.keys, args.dim);
    commit_copies();
    if (is_seen) multiply_rows<kDim, kM>(scores, q_tile + warp * kWarpRows * kRowBytes<kDim>, k_tile);
    wait_for_copies();
    __syncthreads();  // the values are there, and the keys are no longer used
    if (key + kTile < end_key) {
      load_tile<kDim, kTile, kThreads>(k_tile, k, key + kTile, args.keys, args.dim);
      commit_copies();
    }
    if (!is_seen) continue;
    if (key + kTile - 1 > position || key < last_start) {
      mask_scores(scores, key, position, [&](int row) { return start_of(warp_query + row); });
    }
    absorb_scores<kDim>(scores, states, out, scale_log2);
    if constexpr (kDropout) drop_weights(scores, kept);
    WeightParts<kM> weights;
    pack_weights<kM>(weights, scores);
    add_product<kDim, kM>(out, weights, v_tile);
  }

  float factors[kM][2];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(states.sum[m][half]);
      const int query = warp_query + 16 * m + lane_row() + half * 8;
      factors[m][half] = args.dropout.factor / sum;
      if (lane_pair() == 0 && query < args.queries) {
        const int64_t row = static_cast<int64_t>(sample) * args.heads + head;
        args.log_sum_exp.data[row * args.log_sum_exp.stride + query] = states.maximum[m][half] * args.scale + logf(sum);
      }
    }
  }
  store_sums<kDim, kM>(out, factors, memory + warp * kWarpRows * kRowBytes<kDim>,
                       head_of(args.out, static_cast<int64_t>(sample) * args.queries, head, args.dim), warp_query,
                       args.queries, args.dim);
}

template <int kDim, bool kDropout>
cudaError_t launch(const AttentionForwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  const auto kernel = forward_kernel<kDim, kDropout>;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<kDim>);
  if (status != cudaSuccess) return status;
  const dim3 grid(static_cast<unsigned>((args.queries + kQueries - 1) / kQueries), static_cast<unsigned>(args.heads),
                  static_cast<unsigned>(args.batch));
  kernel<<<grid, kThreads, kSharedBytes<kDim>, stream>>>(args);
  return cudaGetLastError();
}

template <int kDim>
cudaError_t launch_for(const AttentionForwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  return args.dropout.threshold == 0 ? launch<kDim, false>(args, stream) : launch<kDim, true>(args, stream);
}

}  // namespace

cudaError_t launch_tensor_cores(const AttentionForwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  if (args.dim <= 64) return launch_for<64>(args, stream);
  if (args.dim <= 80) return launch_for<80>(args, stream);
  if (args.dim <= 96) return launch_for<96>(args, stream);
  return launch_for<128>(args, stream);
}

}  // namespace megalith::ops::cuda
