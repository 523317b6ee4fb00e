#include "ops/cuda/update/optimizer_launch.h"

#include "ops/cuda/reduce.cuh"
#include "ops/cuda/vector.cuh"

namespace megalith::ops::cuda {

namespace {

constexpr int kWidth = 4;  // of the fp32 tensors; 16 bytes

__global__ void set_scalars_kernel(SetScalarsLaunch args) {
  args.scalars->learning_rate = args.learning_rate;
  args.scalars->bias_correction1 = args.bias_correction1;
  args.scalars->bias_correction2 = args.bias_correction2;
}

// ---- the norm of all gradients ----------------------------------------------------------------------------------

constexpr int kNormThreads = 512;
constexpr int kNormUnroll = 4;

__device__ double square(float value) {
  const auto wide = static_cast<double>(value);
  return wide * wide;
}

// A block per tile. Squares of fp32 numbers cannot overflow a double: a sum that is not finite tells of a gradient that
// is not.
__global__ void __launch_bounds__(kNormThreads) sum_of_squares_kernel(const DeviceTile* tiles, double* partials) {
  const DeviceTile tile = tiles[blockIdx.x];
  const auto* gradient = static_cast<const float*>(tile.gradient);
  const int vectors = reinterpret_cast<uintptr_t>(gradient) % 16 == 0 ? tile.elements / kWidth : 0;
  double sum = 0.0;
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += kNormThreads * kNormUnroll) {
    Vector<float, kWidth> held[kNormUnroll];
#pragma unroll
    for (int i = 0; i < kNormUnroll; ++i) {
      const int vector = first + i * kNormThreads;
      held[i] = vector < vectors ? load_once<kWidth>(gradient + vector * kWidth) : Vector<float, kWidth>::filled(0.0f);
    }
#pragma unroll
    for (int i = 0; i < kNormUnroll; ++i) {
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sum += square(held[i][c]);
    }
  }
  for (int i = vectors * kWidth + static_cast<int>(threadIdx.x); i < tile.elements; i += kNormThreads) {
    sum += square(gradient[i]);
  }
  __shared__ double shared[1][kWarp];
  double sums[1] = {sum};
  block_sums(sums, shared);
  if (threadIdx.x == 0) partials[blockIdx.x] = sums[0];
}

constexpr int kFinishThreads = 1024;

__global__ void __launch_bounds__(kFinishThreads)
    finish_norm_kernel(const DeviceTile* tiles, const double* partials, int64_t count, DeviceScalars* scalars) {
  double sum = 0.0;
  int lowest = INT32_MAX;
  for (int64_t i = threadIdx.x; i < count; i += kFinishThreads) {
    sum += partials[i];
    if (!isfinite(partials[i])) lowest = min(lowest, tiles[i].parameter);
  }
  __shared__ double shared[1][kWarp];
  __shared__ int lowest_of_all;
  if (threadIdx.x == 0) lowest_of_all = INT32_MAX;
  double sums[1] = {sum};
  block_sums(sums, shared);
  if (lowest != INT32_MAX) atomicMin(&lowest_of_all, lowest);
  __syncthreads();
  if (threadIdx.x != 0) return;
  scalars->squared_norm = sums[0];
  scalars->first_non_finite = lowest_of_all == INT32_MAX ? -1 : lowest_of_all;
}

__global__ void clip_kernel(ClipLaunch args) {
  DeviceScalars& scalars = *args.scalars;
  const double norm = sqrt(scalars.squared_norm);
  const double factor = args.max_norm > 0.0 ? args.max_norm / (norm + args.norm_epsilon) : 1.0;
  const bool skipped_before = args.skip_stays && scalars.skip != 0;
  scalars.gradient_norm = norm;
  scalars.gradient_factor = static_cast<float>(factor < 1.0 ? factor : 1.0);
  scalars.skip = skipped_before || !isfinite(norm) ? 1 : 0;
}

// ---- AdamW ------------------------------------------------------------------------------------------------------

// Many small blocks, each of which reads all its elements, then writes them, and is gone: what is on its way then lies
// close together in memory, which is worth 8 % over blocks that stay.
constexpr int kAdamThreads = 128;
constexpr int kAdamUnroll = 2;
constexpr int kAdamElements = kAdamThreads * kAdamUnroll * kWidth;  // of one block

struct AdamCoefficients {
  float beta1, beta2, fresh1, fresh2;
  float epsilon;
};

// What the device's scalars add to them.
struct StepCoefficients {
  float gradient_factor;
  float step_size;         // lr / bc1
  float inverse_sqrt_bc2;  // sqrt(v / bc2) = sqrt(v) * this
  float decay;             // 1 - lr * weight_decay
};

__device__ StepCoefficients step_coefficients(const DeviceScalars& scalars, float weight_decay) {
  return {scalars.gradient_factor, __fdiv_rn(scalars.learning_rate, scalars.bias_correction1),
          __frcp_rn(__fsqrt_rn(scalars.bias_correction2)), 1.0f - scalars.learning_rate * weight_decay};
}

__device__ void adamw_element(const AdamCoefficients& k, const StepCoefficients& step, float gradient, float& weight,
                              float& m, float& v) {
  const float g = step.gradient_factor * gradient;
  m = k.beta1 * m + k.fresh1 * g;
  v = k.beta2 * v + k.fresh2 * g * g;
  weight = weight * step.decay - __fdividef(step.step_size * m, sqrtf(v) * step.inverse_sqrt_bc2 + k.epsilon);
}

template <class T>
__device__ bool tile_aligned(const DeviceTile& tile) {
  const auto main = reinterpret_cast<uintptr_t>(tile.gradient) | reinterpret_cast<uintptr_t>(tile.exp_avg) |
                    reinterpret_cast<uintptr_t>(tile.exp_avg_sq);
  const auto weights = reinterpret_cast<uintptr_t>(tile.weights) | reinterpret_cast<uintptr_t>(tile.remainder);
  return main % 16 == 0 && weights % (kWidth * sizeof(T)) == 0;
}

// The weights of a tile, in fp32 whatever they are stored as.
template <class T, int kElements>
struct MasterWeights;

template <int kElements>
struct MasterWeights<float, kElements> {
  float* weights;
  using Loaded = Vector<float, kElements>;

  __device__ explicit MasterWeights(const DeviceTile& tile) : weights(static_cast<float*>(tile.weights)) {}
  __device__ Loaded load(int at) const { return load_once<kElements>(weights + at); }
  __device__ static float value(const Loaded& in, int i) { return in[i]; }
  __device__ void store(int at, const float (&values)[kElements]) const {
    store_once(weights + at, Vector<float, kElements>::from(values));
  }
};

// bf16 and the 16 bits it leaves out: split_float() and join_float() of core/dtype.h.
template <int kElements>
struct MasterWeights<bf16, kElements> {
  bf16* weights;
  bf16* remainder;  // int16 in truth: only its bits are moved
  struct Loaded {
    Vector<bf16, kElements> high, low;
  };

  __device__ explicit MasterWeights(const DeviceTile& tile)
      : weights(static_cast<bf16*>(tile.weights)), remainder(static_cast<bf16*>(tile.remainder)) {}
  __device__ Loaded load(int at) const {
    return {load_once<kElements>(weights + at), load_once<kElements>(remainder + at)};
  }
  __device__ static uint32_t half(const Vector<bf16, kElements>& in, int i) {
    return i % 2 == 0 ? in.word[i / 2] & 0xffffu : in.word[i / 2] >> 16;
  }
  __device__ static float value(const Loaded& in, int i) {
    return __uint_as_float((half(in.high, i) << 16) + static_cast<uint32_t>(static_cast<int16_t>(half(in.low, i))));
  }
  __device__ void store(int at, const float (&values)[kElements]) const {
    Vector<bf16, kElements> high = {}, low = {};
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const uint32_t word = __float_as_uint(values[i]);
      high.word[i / 2] |= (word + 0x8000u) >> 16 << (i % 2 * 16);
      low.word[i / 2] |= (word & 0xffffu) << (i % 2 * 16);
    }
    store_once(weights + at, high);
    store_once(remainder + at, low);
  }
};

template <class T, int kElements>
struct AdamTile {
  const float* gradient;
  float* exp_avg;
  float* exp_avg_sq;
  MasterWeights<T, kElements> master;

  struct Loaded {
    Vector<float, kElements> gradient, m, v;
    typename MasterWeights<T, kElements>::Loaded master;
  };

  __device__ explicit AdamTile(const DeviceTile& tile)
      : gradient(static_cast<const float*>(tile.gradient)),
        exp_avg(static_cast<float*>(tile.exp_avg)),
        exp_avg_sq(static_cast<float*>(tile.exp_avg_sq)),
        master(tile) {}

  __device__ Loaded load(int at) const {
    return {load_once<kElements>(gradient + at), load_once<kElements>(exp_avg + at),
            load_once<kElements>(exp_avg_sq + at), master.load(at)};
  }
  __device__ void update(const AdamCoefficients& k, const StepCoefficients& step, int at, const Loaded& in) const {
    float weight[kElements], m[kElements], v[kElements];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      weight[i] = MasterWeights<T, kElements>::value(in.master, i);
      m[i] = in.m[i];
      v[i] = in.v[i];
      adamw_element(k, step, in.gradient[i], weight[i], m[i], v[i]);
    }
    store_once(exp_avg + at, Vector<float, kElements>::from(m));
    store_once(exp_avg_sq + at, Vector<float, kElements>::from(v));
    master.store(at, weight);
  }
};

// kElements at a time of [begin, end).
template <class T, int kElements>
__device__ void adamw_span(const DeviceTile& tile, const AdamCoefficients& k, const StepCoefficients& step, int begin,
                           int end) {
  const AdamTile<T, kElements> span(tile);
  constexpr int kStride = kAdamThreads * kElements;
  for (int first = begin + static_cast<int>(threadIdx.x) * kElements; first < end; first += kStride * kAdamUnroll) {
    typename AdamTile<T, kElements>::Loaded held[kAdamUnroll];
#pragma unroll
    for (int i = 0; i < kAdamUnroll; ++i) {
      if (first + i * kStride < end) held[i] = span.load(first + i * kStride);
    }
#pragma unroll
    for (int i = 0; i < kAdamUnroll; ++i) {
      if (first + i * kStride < end) span.update(k, step, first + i * kStride, held[i]);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kAdamThreads)
    adamw_kernel(const DeviceTile* tiles, const DeviceScalars* scalars, AdamCoefficients k, uint32_t blocks_per_tile) {
  const uint32_t index = blockIdx.x / blocks_per_tile;
  const int begin = static_cast<int>(blockIdx.x - index * blocks_per_tile) * kAdamElements;
  const DeviceTile tile = tiles[index];
  const int end = min(tile.elements, begin + kAdamElements);
  if (begin >= end || scalars->skip != 0) return;
  const StepCoefficients step = step_coefficients(*scalars, tile.weight_decay);
  const int whole = tile_aligned<T>(tile) ? begin + (end - begin) / kWidth * kWidth : begin;
  adamw_span<T, kWidth>(tile, k, step, begin, whole);
  adamw_span<T, 1>(tile, k, step, whole, end);
}

}  // namespace

void launch_set_scalars(const SetScalarsLaunch& args, void* stream) {
  set_scalars_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(args);
}

void launch_gradient_norm(const TilesLaunch& tiles, double* partials, DeviceScalars* scalars, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (tiles.count > 0) {
    sum_of_squares_kernel<<<static_cast<unsigned>(tiles.count), kNormThreads, 0, on>>>(tiles.tiles, partials);
  }
  finish_norm_kernel<<<1, kFinishThreads, 0, on>>>(tiles.tiles, partials, tiles.count, scalars);
}

void launch_clip_gradients(const ClipLaunch& args, void* stream) {
  clip_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(args);
}

void launch_adamw(const AdamWLaunch& args, void* stream) {
  if (args.tiles.count == 0) return;
  const AdamCoefficients coefficients{static_cast<float>(args.beta1), static_cast<float>(args.beta2),
                                      static_cast<float>(1.0 - args.beta1), static_cast<float>(1.0 - args.beta2),
                                      static_cast<float>(args.epsilon)};
  const int64_t blocks_per_tile = divide_up(args.tiles.tile_elements, kAdamElements);
  dispatch(args.tiles.weights, [&](auto zero) {
    adamw_kernel<decltype(zero)><<<static_cast<unsigned>(args.tiles.count * blocks_per_tile), kAdamThreads, 0,
                                   static_cast<cudaStream_t>(stream)>>>(args.tiles.tiles, args.scalars, coefficients,
                                                                        static_cast<uint32_t>(blocks_per_tile));
  });
}

}  // namespace megalith::ops::cuda
