#include "ops/cuda/attention_random.cuh"
#include "ops/cuda/reduce.cuh"

// Attention in fp32 arithmetic for what the tensor cores do not take: fp32 models, odd head sizes. A warp owns one row
// (a query, or a key in the pass for dk and dv) and meets the rows of the other side 32 at a time, one per lane.

namespace megalith::ops::cuda {

namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kTile = 32;
constexpr int kChunk = 64;
constexpr float kNever = -__builtin_huge_valf();

__device__ __forceinline__ float widen(float value) {
  return value;
}
__device__ __forceinline__ float widen(Bf16Bits value) {
  return __uint_as_float(static_cast<uint32_t>(value) << 16);
}
__device__ __forceinline__ void store(float value, float* to) {
  *to = value;
}
__device__ __forceinline__ void store(float value, Bf16Bits* to) {
  Bf16Bits bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  *to = bits;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

// The columns of one head from row `row` on.
template <class T>
__device__ __forceinline__ AttentionRows<T> head_rows(AttentionRows<T> rows, int64_t row, int head, int dim) {
  return {rows.data + row * rows.stride + static_cast<int64_t>(head) * dim, rows.stride};
}

// Copies a row to shared memory; zeros where it does not exist.
template <class T>
__device__ void load_row(AttentionRows<const T> rows, int row, bool exists, int dim, float* to) {
  for (int d = threadIdx.x % 32; d < dim; d += 32) to[d] = exists ? widen(rows.data[row * rows.stride + d]) : 0.0F;
}

template <class T>
__device__ void store_row(const float* row, float factor, int dim, T* to) {
  for (int d = threadIdx.x % 32; d < dim; d += 32) store(row[d] * factor, to + d);
}

// The product of each warp's `vector` with row `lane` of `rows`, of which the first `count` exist. All threads of the
// block call it together.
template <class T>
__device__ float dot_with_lane_row(const float* vector, AttentionRows<const T> rows, int count, int dim,
                                   float (*chunk)[kChunk + 1]) {
  const int lane = threadIdx.x % 32;
  float sum = 0.0F;
  for (int begin = 0; begin < dim; begin += kChunk) {
    const int width = min(kChunk, dim - begin);
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kChunk; i += kThreads) {
      const int row = i / kChunk;
      const int col = i % kChunk;
      const bool exists = row < count && col < width;
      chunk[row][col] = exists ? widen(rows.data[row * rows.stride + begin + col]) : 0.0F;
    }
    __syncthreads();
    for (int col = 0; col < width; ++col) sum = fmaf(vector[begin + col], chunk[lane][col], sum);
  }
  return sum;
}

// sum += the rows of `rows`, row i weighted with the `weight` of lane i.
template <class T>
__device__ void add_weighted_rows(float weight, AttentionRows<const T> rows, int count, int dim, float* sum) {
  for (int begin = 0; begin < dim; begin += 32) {
    const int d = begin + threadIdx.x % 32;
    float total = d < dim ? sum[d] : 0.0F;
    for (int i = 0; i < count; ++i) {
      const float factor = __shfl_sync(0xffffffffu, weight, i);
      if (factor != 0.0F && d < dim) total = fmaf(factor, widen(rows.data[i * rows.stride + d]), total);
    }
    if (d < dim) sum[d] = total;
  }
}

__device__ void clear_row(float* row, int dim) {
  for (int d = threadIdx.x % 32; d < dim; d += 32) row[d] = 0.0F;
}

__device__ __forceinline__ int start_of(const int32_t* document_starts, int sample, int queries, int query) {
  return document_starts == nullptr ? 0
                                    : document_starts[static_cast<int64_t>(sample) * queries + min(query, queries - 1)];
}

template <class T>
__global__ void __launch_bounds__(kThreads) forward_kernel(const AttentionForwardLaunch<T> args) {
  __shared__ float chunk[kTile][kChunk + 1];
  extern __shared__ float memory[];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* q = memory + warp * 2 * args.dim;
  float* sum = q + args.dim;

  const int head = blockIdx.y;
  const int sample = blockIdx.z;
  const int kv_head = head / (args.heads / args.kv_heads);
  const int first_query = (gridDim.x - 1 - blockIdx.x) * kWarps;
  const int query = first_query + warp;
  const bool exists = query < args.queries;
  const int position = args.query_offset + query;
  const int start = start_of(args.document_starts, sample, args.queries, query);
  const auto queries = head_rows(args.q, static_cast<int64_t>(sample) * args.queries, head, args.dim);
  const auto keys = head_rows(args.k, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const auto values = head_rows(args.v, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const uint64_t key_of_sample = args.dropout.threshold == 0 ? 0 : sample_key(args.dropout, sample);
  const int64_t channel = first_channel(args.dropout, head);

  load_row(queries, query, exists, args.dim, q);
  clear_row(sum, args.dim);
  float maximum = kNever;
  float total = 0.0F;  // of this lane's keys
  const int end = args.query_offset + min(first_query + kWarps, args.queries);
  const int begin = start_of(args.document_starts, sample, args.queries, first_query) / kTile * kTile;
  for (int tile = begin; tile < end; tile += kTile) {
    const int count = min(kTile, end - tile);
    const auto tile_keys = AttentionRows<const T>{keys.data + tile * keys.stride, keys.stride};
    const auto tile_values = AttentionRows<const T>{values.data + tile * values.stride, values.stride};
    const int key = tile + lane;
    const bool visible = exists && start <= key && key <= position;
    const float product = dot_with_lane_row(q, tile_keys, count, args.dim, chunk);
    const float score = visible ? product * args.scale : kNever;
    const float new_maximum = fmaxf(maximum, warp_max(score));
    const float base = new_maximum == kNever ? 0.0F : new_maximum;
    const float correction = __expf(maximum - base);
    float weight = __expf(score - base);
    maximum = new_maximum;
    total = total * correction + weight;
    for (int d = lane; d < args.dim; d += 32) sum[d] *= correction;
    if (args.dropout.threshold != 0 && visible &&
        !is_kept(key_of_sample, args.dropout.threshold, channel + key, position)) {
      weight = 0.0F;
    }
    __syncwarp();
    add_weighted_rows(weight, tile_values, count, args.dim, sum);
  }
  total = warp_sum(total);
  __syncwarp();
  if (!exists) return;
  const auto out = head_rows(args.out, static_cast<int64_t>(sample) * args.queries + query, head, args.dim);
  store_row(sum, args.dropout.factor / total, args.dim, out.data);
  if (lane == 0) {
    const int64_t row = static_cast<int64_t>(sample) * args.heads + head;
    args.log_sum_exp.data[row * args.log_sum_exp.stride + query] = maximum + logf(total);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) delta_kernel(const AttentionBackwardLaunch<T> args) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;  // of a row and head
  const int64_t row = index / args.heads;
  const int head = static_cast<int>(index % args.heads);
  if (row >= static_cast<int64_t>(args.batch) * args.queries) return;
  const auto a = head_rows(args.dout, row, head, args.dim);
  const auto b = head_rows(args.out, row, head, args.dim);
  float sum = 0.0F;
  for (int d = threadIdx.x % 32; d < args.dim; d += 32) sum = fmaf(widen(a.data[d]), widen(b.data[d]), sum);
  sum = warp_sum(sum);
  const int64_t sample = row / args.queries;
  if (threadIdx.x % 32 == 0) args.delta[(sample * args.heads + head) * args.queries + row % args.queries] = sum;
}

// What a query and a key give each other: the weight after dropout, and the gradient of the score.
struct PairGradient {
  float weight;
  float dscore;
};

struct PairInput {
  float product;   // q . k
  float dproduct;  // dout . v
  float log_sum_exp;
  float delta;
};

__device__ __forceinline__ PairGradient differentiate(const PairInput& in, float scale, bool kept, float factor) {
  const float weight = __expf(in.product * scale - in.log_sum_exp);
  const float keep = kept ? factor : 0.0F;
  return {weight * keep, weight * (in.dproduct * keep - in.delta)};
}

template <class T>
__global__ void __launch_bounds__(kThreads) dq_kernel(const AttentionBackwardLaunch<T> args) {
  __shared__ float chunk[kTile][kChunk + 1];
  extern __shared__ float memory[];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* q = memory + warp * 3 * args.dim;
  float* dout = q + args.dim;
  float* dq = dout + args.dim;

  const int head = blockIdx.y;
  const int sample = blockIdx.z;
  const int kv_head = head / (args.heads / args.kv_heads);
  const int first_query = (gridDim.x - 1 - blockIdx.x) * kWarps;
  const int query = first_query + warp;
  const bool exists = query < args.queries;
  const int position = args.query_offset + query;
  const int start = start_of(args.document_starts, sample, args.queries, query);
  const int64_t first_row = static_cast<int64_t>(sample) * args.queries;
  const auto keys = head_rows(args.k, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const auto values = head_rows(args.v, static_cast<int64_t>(sample) * args.keys, kv_head, args.dim);
  const int64_t stats_row = static_cast<int64_t>(sample) * args.heads + head;
  const float log_sum_exp = exists ? args.log_sum_exp.data[stats_row * args.log_sum_exp.stride + query] : 0.0F;
  const float delta = exists ? args.delta[stats_row * args.queries + query] : 0.0F;
  const uint64_t key_of_sample = args.dropout.threshold == 0 ? 0 : sample_key(args.dropout, sample);
  const int64_t channel = first_channel(args.dropout, head);

  load_row(head_rows(args.q, first_row, head, args.dim), query, exists, args.dim, q);
  load_row(head_rows(args.dout, first_row, head, args.dim), query, exists, args.dim, dout);
  clear_row(dq, args.dim);
  const int end = args.query_offset + min(first_query + kWarps, args.queries);
  const int begin = start_of(args.document_starts, sample, args.queries, first_query) / kTile * kTile;
  for (int tile = begin; tile < end; tile += kTile) {
    const int count = min(kTile, end - tile);
    const auto tile_keys = AttentionRows<const T>{keys.data + tile * keys.stride, keys.stride};
    const auto tile_values = AttentionRows<const T>{values.data + tile * values.stride, values.stride};
    const int key = tile + lane;
    const float product = dot_with_lane_row(q, tile_keys, count, args.dim, chunk);
    const float dproduct = dot_with_lane_row(dout, tile_values, count, args.dim, chunk);
    float dscore = 0.0F;
    if (exists && start <= key && key <= position) {
      const bool kept =
          args.dropout.threshold == 0 || is_kept(key_of_sample, args.dropout.threshold, channel + key, position);
      dscore = differentiate({product, dproduct, log_sum_exp, delta}, args.scale, kept, args.dropout.factor).dscore;
    }
    __syncwarp();
    add_weighted_rows(dscore, tile_keys, count, args.dim, dq);
  }
  __syncwarp();
  if (exists) store_row(dq, args.scale, args.dim, head_rows(args.dq, first_row + query, head, args.dim).data);
}

// The sums over queries run through the query heads of the key-value head one after the other: always the same order.
template <class T>
__global__ void __launch_bounds__(kThreads) dkv_kernel(const AttentionBackwardLaunch<T> args) {
  __shared__ float chunk[kTile][kChunk + 1];
  extern __shared__ float memory[];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* k = memory + warp * 4 * args.dim;
  float* v = k + args.dim;
  float* dk = v + args.dim;
  float* dv = dk + args.dim;

  const int kv_head = blockIdx.y;
  const int sample = blockIdx.z;
  const int group = args.heads / args.kv_heads;
  const int first_key = blockIdx.x * kWarps;
  const int key = first_key + warp;
  const bool exists = key < args.keys;
  const int64_t first_row = static_cast<int64_t>(sample) * args.keys;
  const int64_t first_query_row = static_cast<int64_t>(sample) * args.queries;
  const uint64_t key_of_sample = args.dropout.threshold == 0 ? 0 : sample_key(args.dropout, sample);

  load_row(head_rows(args.k, first_row, kv_head, args.dim), key, exists, args.dim, k);
  load_row(head_rows(args.v, first_row, kv_head, args.dim), key, exists, args.dim, v);
  clear_row(dk, args.dim);
  clear_row(dv, args.dim);
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const int64_t stats_row = static_cast<int64_t>(sample) * args.heads + head;
    const auto queries = head_rows(args.q, first_query_row, head, args.dim);
    const auto douts = head_rows(args.dout, first_query_row, head, args.dim);
    for (int tile = max(0, first_key - args.query_offset) / kTile * kTile; tile < args.queries; tile += kTile) {
      // From here on no query sees these keys any more.
      if (start_of(args.document_starts, sample, args.queries, tile) >= first_key + kWarps) break;
      const int count = min(kTile, args.queries - tile);
      const auto tile_queries = AttentionRows<const T>{queries.data + tile * queries.stride, queries.stride};
      const auto tile_douts = AttentionRows<const T>{douts.data + tile * douts.stride, douts.stride};
      const int query = tile + lane;
      const int position = args.query_offset + query;
      const float product = dot_with_lane_row(k, tile_queries, count, args.dim, chunk);
      const float dproduct = dot_with_lane_row(v, tile_douts, count, args.dim, chunk);
      PairGradient gradient{0.0F, 0.0F};
      if (exists && query < args.queries && key <= position &&
          start_of(args.document_starts, sample, args.queries, query) <= key) {
        const bool kept = args.dropout.threshold == 0 || is_kept(key_of_sample, args.dropout.threshold,
                                                                 first_channel(args.dropout, head) + key, position);
        const PairInput in{product, dproduct, args.log_sum_exp.data[stats_row * args.log_sum_exp.stride + query],
                           args.delta[stats_row * args.queries + query]};
        gradient = differentiate(in, args.scale, kept, args.dropout.factor);
      }
      __syncwarp();
      add_weighted_rows(gradient.weight, tile_douts, count, args.dim, dv);
      add_weighted_rows(gradient.dscore, tile_queries, count, args.dim, dk);
    }
  }
  __syncwarp();
  if (!exists) return;
  store_row(dk, args.scale, args.dim, head_rows(args.dk, first_row + key, kv_head, args.dim).data);
  store_row(dv, 1.0F, args.dim, head_rows(args.dv, first_row + key, kv_head, args.dim).data);
}

unsigned blocks_for(int64_t rows) {
  return static_cast<unsigned>((rows + kWarps - 1) / kWarps);
}

// Launches a kernel whose warps keep `vectors` rows in shared memory.
template <class Args>
cudaError_t launch(void (*kernel)(Args), const Args& args, dim3 grid, int vectors, cudaStream_t stream) {
  const int bytes = kWarps * vectors * args.dim * static_cast<int>(sizeof(float));
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  kernel<<<grid, kThreads, static_cast<size_t>(bytes), stream>>>(args);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_forward(const AttentionForwardLaunch<T>& args, cudaStream_t stream) {
  const dim3 grid(blocks_for(args.queries), static_cast<unsigned>(args.heads), static_cast<unsigned>(args.batch));
  return launch(forward_kernel<T>, args, grid, 2, stream);
}

template <class T>
cudaError_t launch_delta(const AttentionBackwardLaunch<T>& args, cudaStream_t stream) {
  const int64_t rows = static_cast<int64_t>(args.batch) * args.queries * args.heads;
  delta_kernel<T><<<blocks_for(rows), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_backward(const AttentionBackwardLaunch<T>& args, cudaStream_t stream) {
  const auto batch = static_cast<unsigned>(args.batch);
  cudaError_t status = launch_delta(args, stream);
  if (status != cudaSuccess) return status;
  status =
      launch(dq_kernel<T>, args, dim3(blocks_for(args.queries), static_cast<unsigned>(args.heads), batch), 3, stream);
  if (status != cudaSuccess) return status;
  return launch(dkv_kernel<T>, args, dim3(blocks_for(args.keys), static_cast<unsigned>(args.kv_heads), batch), 4,
                stream);
}

}  // namespace

cudaError_t launch_generic_forward(const AttentionForwardLaunch<float>& args, cudaStream_t stream) {
  return launch_forward(args, stream);
}
cudaError_t launch_generic_forward(const AttentionForwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  return launch_forward(args, stream);
}
cudaError_t launch_generic_backward(const AttentionBackwardLaunch<float>& args, cudaStream_t stream) {
  return launch_backward(args, stream);
}
cudaError_t launch_generic_backward(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  return launch_backward(args, stream);
}

}  // namespace megalith::ops::cuda
