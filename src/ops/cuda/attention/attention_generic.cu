#include "ops/cuda/attention/attention_random.cuh"
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
__device__ __forceinline__ AttentionRows<const T> from_row(AttentionRows<const T> rows, int row) {
  return {rows.data + row * rows.stride, rows.stride};
}

// Whether dropout keeps the weights of one head of a sample.
class Draws {
 public:
  __device__ Draws(const AttentionDropout& dropout, int sample, int head)
      : threshold_(dropout.threshold),
        key_(threshold_ == 0 ? 0 : sample_key(dropout, sample)),
        channel_(first_channel(dropout, head)) {}

  __device__ bool keep(int key, int position) const {
    return threshold_ == 0 || is_kept(key_, threshold_, channel_ + key, position);
  }

 private:
  uint32_t threshold_;
  uint64_t key_;
  int64_t channel_;
};

// The query that a warp owns, and the keys that its block meets: those that any of its queries sees.
template <class T>
struct OwnQuery {
  const AttentionForwardLaunch<T>& args;
  int head = static_cast<int>(blockIdx.y);
  int sample = static_cast<int>(blockIdx.z);
  int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kWarps;  // of the block
  int index = first + static_cast<int>(threadIdx.x) / 32;
  bool exists = index < args.queries;
  int position = args.query_offset + index;
  int start = start_of(args.document_starts, sample, args.queries, index);
  int first_key = start_of(args.document_starts, sample, args.queries, first) / kTile * kTile;
  int end_key = args.query_offset + min(first + kWarps, args.queries);
  int64_t first_row = static_cast<int64_t>(sample) * args.queries;  // of its sample
  int64_t stats_row = static_cast<int64_t>(sample) * args.heads + head;

  __device__ bool sees(int key) const { return exists && start <= key && key <= position; }

  // The columns of its head in the rows of its sample.
  __device__ AttentionRows<const T> of_queries(AttentionRows<const T> rows) const {
    return head_rows(rows, first_row, head, args.dim);
  }
  __device__ AttentionRows<const T> of_keys(AttentionRows<const T> rows) const {
    return head_rows(rows, static_cast<int64_t>(sample) * args.keys, head / (args.heads / args.kv_heads), args.dim);
  }
  __device__ T* row_in(AttentionRows<T> rows) const { return head_rows(rows, first_row + index, head, args.dim).data; }
};

template <class T>
__global__ void __launch_bounds__(kThreads) forward_kernel(const AttentionForwardLaunch<T> args) {
  __shared__ float chunk[kTile][kChunk + 1];
  extern __shared__ float memory[];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* q = memory + warp * 2 * args.dim;
  float* sum = q + args.dim;

  const OwnQuery<T> query{args};
  const Draws draws(args.dropout, query.sample, query.head);
  const auto keys = query.of_keys(args.k);
  const auto values = query.of_keys(args.v);
  load_row(query.of_queries(args.q), query.index, query.exists, args.dim, q);
  clear_row(sum, args.dim);
  float maximum = kNever;
  float total = 0.0F;  // of this lane's keys
  for (int tile = query.first_key; tile < query.end_key; tile += kTile) {
    const int count = min(kTile, query.end_key - tile);
    const int key = tile + lane;
    const float product = dot_with_lane_row(q, from_row(keys, tile), count, args.dim, chunk);
    const float score = query.sees(key) ? product * args.scale : kNever;
    const float new_maximum = fmaxf(maximum, warp_max(score));
    const float base = new_maximum == kNever ? 0.0F : new_maximum;
    const float correction = __expf(maximum - base);
    float weight = __expf(score - base);
    maximum = new_maximum;
    total = total * correction + weight;
    for (int d = lane; d < args.dim; d += 32) sum[d] *= correction;
    if (query.sees(key) && !draws.keep(key, query.position)) weight = 0.0F;
    __syncwarp();
    add_weighted_rows(weight, from_row(values, tile), count, args.dim, sum);
  }
  total = warp_sum(total);
  __syncwarp();
  if (!query.exists) return;
  store_row(sum, args.dropout.factor / total, args.dim, query.row_in(args.out));
  if (lane == 0) {
    args.log_sum_exp.data[query.stats_row * args.log_sum_exp.stride + query.index] = maximum + logf(total);
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

  const OwnQuery<T> query{args};
  const Draws draws(args.dropout, query.sample, query.head);
  const auto keys = query.of_keys(args.k);
  const auto values = query.of_keys(args.v);
  PairInput in{};
  if (query.exists) {
    in.log_sum_exp = args.log_sum_exp.data[query.stats_row * args.log_sum_exp.stride + query.index];
    in.delta = args.delta[query.stats_row * args.queries + query.index];
  }
  load_row(query.of_queries(args.q), query.index, query.exists, args.dim, q);
  load_row(query.of_queries(args.dout), query.index, query.exists, args.dim, dout);
  clear_row(dq, args.dim);
  for (int tile = query.first_key; tile < query.end_key; tile += kTile) {
    const int count = min(kTile, query.end_key - tile);
    const int key = tile + lane;
    in.product = dot_with_lane_row(q, from_row(keys, tile), count, args.dim, chunk);
    in.dproduct = dot_with_lane_row(dout, from_row(values, tile), count, args.dim, chunk);
    float dscore = 0.0F;
    if (query.sees(key)) {
      dscore = differentiate(in, args.scale, draws.keep(key, query.position), args.dropout.factor).dscore;
    }
    __syncwarp();
    add_weighted_rows(dscore, from_row(keys, tile), count, args.dim, dq);
  }
  __syncwarp();
  if (query.exists) store_row(dq, args.scale, args.dim, query.row_in(args.dq));
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

  load_row(head_rows(args.k, first_row, kv_head, args.dim), key, exists, args.dim, k);
  load_row(head_rows(args.v, first_row, kv_head, args.dim), key, exists, args.dim, v);
  clear_row(dk, args.dim);
  clear_row(dv, args.dim);
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const int64_t stats_row = static_cast<int64_t>(sample) * args.heads + head;
    const auto queries = head_rows(args.q, first_query_row, head, args.dim);
    const auto douts = head_rows(args.dout, first_query_row, head, args.dim);
    const Draws draws(args.dropout, sample, head);
    for (int tile = max(0, first_key - args.query_offset) / kTile * kTile; tile < args.queries; tile += kTile) {
      // From here on no query sees these keys any more.
      if (start_of(args.document_starts, sample, args.queries, tile) >= first_key + kWarps) break;
      const int count = min(kTile, args.queries - tile);
      const auto tile_queries = from_row(queries, tile);
      const auto tile_douts = from_row(douts, tile);
      const int query = tile + lane;
      const int position = args.query_offset + query;
      const float product = dot_with_lane_row(k, tile_queries, count, args.dim, chunk);
      const float dproduct = dot_with_lane_row(v, tile_douts, count, args.dim, chunk);
      PairGradient gradient{0.0F, 0.0F};
      if (exists && query < args.queries && key <= position &&
          start_of(args.document_starts, sample, args.queries, query) <= key) {
        const PairInput in{product, dproduct, args.log_sum_exp.data[stats_row * args.log_sum_exp.stride + query],
                           args.delta[stats_row * args.queries + query]};
        gradient = differentiate(in, args.scale, draws.keep(key, position), args.dropout.factor);
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

cudaError_t launch_generic(const AttentionForwardLaunch<float>& args, cudaStream_t stream) {
  return launch_forward(args, stream);
}
cudaError_t launch_generic(const AttentionForwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  return launch_forward(args, stream);
}
cudaError_t launch_generic(const AttentionBackwardLaunch<float>& args, cudaStream_t stream) {
  return launch_backward(args, stream);
}
cudaError_t launch_generic(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream) {
  return launch_backward(args, stream);
}

}  // namespace megalith::ops::cuda
