#include "ops/cuda/cross_entropy_launch.h"

#include <cfloat>

#include "ops/cuda/reduce.cuh"
#include "ops/cuda/shared_memory.cuh"
#include "ops/cuda/vector.cuh"

namespace megalith::ops::cuda {

namespace {

constexpr int kUnroll = 4;

template <class T>
struct Operands {
  Rows<T> logits;
  const int32_t* targets;
  const float* weights;
  float* losses;
  int vocabulary;
  int cols;
  const double* gradient_scale;
  int kept_vectors;  // of the row, kept in shared memory for the second pass
};

__device__ float exponential(float x) {
  constexpr float kLog2e = 1.4426950408889634f;
  return exp2f(x * kLog2e);
}

// sum = the sum of exp(x - maximum). The maximum begins at the lowest finite number, not at -infinity, so that logits
// of -infinity count as nothing; a NaN, which no maximum sees, reaches the sum.
struct SoftmaxSum {
  float maximum = -FLT_MAX;
  float sum = 0.0f;

  __device__ void merge(const SoftmaxSum& other) {
    const float higher = fmaxf(maximum, other.maximum);
    sum = sum * exponential(maximum - higher) + other.sum * exponential(other.maximum - higher);
    maximum = higher;
  }

  template <int kWidth>
  __device__ void add(const float (&values)[kWidth]) {
    float higher = maximum;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) higher = fmaxf(higher, values[i]);
    if (higher > maximum) {
      sum *= exponential(maximum - higher);
      maximum = higher;
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += exponential(values[i] - maximum);
  }
};

__device__ SoftmaxSum warp_merge(SoftmaxSum value) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2) {
    value.merge({__shfl_xor_sync(kAllLanes, value.maximum, lane), __shfl_xor_sync(kAllLanes, value.sum, lane)});
  }
  return value;
}

template <int kThreads>
__device__ SoftmaxSum block_merge(SoftmaxSum value) {
  __shared__ float maxima[kThreads / kWarp], sums[kThreads / kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  value = warp_merge(value);
  if (lane == 0) {
    maxima[threadIdx.x / kWarp] = value.maximum;
    sums[threadIdx.x / kWarp] = value.sum;
  }
  __syncthreads();
  SoftmaxSum other;
  if (lane < kThreads / kWarp) other = {maxima[lane], sums[lane]};
  return warp_merge(other);
}

// body(vectors, first index): kUnroll vectors of a thread at a time, all read before the first is used.
template <int kThreads, int kWidth, class T, class Read, class Body>
__device__ void each_vector(int vectors, const Read& read, const Body& body) {
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += kThreads * kUnroll) {
    Vector<T, kWidth> held[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int vector = first + i * kThreads;
      if (vector < vectors) held[i] = read(vector);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int vector = first + i * kThreads;
      if (vector < vectors) body(held[i], vector);
    }
  }
}

template <class T, int kWidth>
__device__ void clear_row(T* row, int cols) {
  for (int vector = static_cast<int>(threadIdx.x); vector < cols / kWidth; vector += static_cast<int>(blockDim.x)) {
    store(row + int64_t{vector} * kWidth, Vector<T, kWidth>::filled(0.0f));
  }
}

// A block per row. The first pass finds the softmax's sum and keeps what fits of the row in shared memory, from where
// (or from L2) the second takes it and writes the gradient in its place.
template <class T, int kWidth, int kThreads, bool kGradient>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads) cross_entropy_kernel(Operands<T> args) {
  extern __shared__ uint4 dynamic_shared[];
  auto* kept = reinterpret_cast<T*>(dynamic_shared);
  const int64_t row = blockIdx.x;
  T* logits = args.logits.at(row, 0);
  const float weight = args.weights[row];
  if (weight == 0.0f) {
    if (threadIdx.x == 0) args.losses[row] = 0.0f;
    if (kGradient) clear_row<T, kWidth>(logits, args.cols);
    return;
  }
  // A target that is none makes the loss NaN: nothing else can be told from here.
  const int target = args.targets[row];
  const float at_target =
      0 <= target && target < args.vocabulary ? load<1>(logits + target)[0] : __int_as_float(0x7fffffff);

  SoftmaxSum softmax;
  each_vector<kThreads, kWidth, T>((args.vocabulary + kWidth - 1) / kWidth,
                                   [&](int vector) { return load_once<kWidth>(logits + int64_t{vector} * kWidth); },
                                   [&](const Vector<T, kWidth>& in, int vector) {
                                     if (kGradient && vector < args.kept_vectors) store(kept + vector * kWidth, in);
                                     float values[kWidth];
#pragma unroll
                                     for (int i = 0; i < kWidth; ++i)
                                       values[i] = vector * kWidth + i < args.vocabulary ? in[i] : -INFINITY;
                                     softmax.add(values);
                                   });
  // Also the point after which the target's logit may be overwritten.
  softmax = block_merge<kThreads>(softmax);
  if (threadIdx.x == kThreads - 1) {  // one of those that have the least left to do
    const auto log_sum = static_cast<float>(log(static_cast<double>(softmax.sum)));
    args.losses[row] = weight * (log_sum + (softmax.maximum - at_target));
  }
  if (!kGradient) return;

  const float scale = args.gradient_scale == nullptr ? 1.0f : static_cast<float>(*args.gradient_scale);
  const float factor = at_target == at_target ? weight * scale : at_target;
  const float share = __fdividef(factor, softmax.sum);
  each_vector<kThreads, kWidth, T>(
      args.cols / kWidth,
      [&](int vector) {
        return vector < args.kept_vectors ? load<kWidth>(kept + vector * kWidth)
                                          : load_once<kWidth>(logits + int64_t{vector} * kWidth);
      },
      [&](const Vector<T, kWidth>& in, int vector) {
        float values[kWidth];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const int col = vector * kWidth + i;
          values[i] = share * exponential(in[i] - softmax.maximum);
          if (col == target) values[i] -= factor;
          if (col >= args.vocabulary) values[i] = 0.0f;
        }
        store(logits + int64_t{vector} * kWidth, Vector<T, kWidth>::from(values));
      });
}

template <class T, int kWidth, int kThreads, bool kGradient>
void launch(Operands<T> args, int64_t rows, int64_t kept_bytes, void* stream) {
  constexpr int64_t kStatic = 2 * kThreads / kWarp * static_cast<int64_t>(sizeof(float));
  const auto kernel = cross_entropy_kernel<T, kWidth, kThreads, kGradient>;
  if (kept_bytes > 0 && !reserve_shared_memory(kernel, kept_bytes, kStatic)) kept_bytes = 0;
  args.kept_vectors = static_cast<int>(kept_bytes / 16);
  kernel<<<static_cast<unsigned>(rows), kThreads, static_cast<size_t>(kept_bytes), static_cast<cudaStream_t>(stream)>>>(
      args);
}

// Where two rows fit into a multiprocessor's shared memory, two blocks share it: while one waits, the other moves
// bytes.
template <class T, int kWidth, bool kGradient>
void launch(const Operands<T>& args, int64_t rows, void* stream) {
  if constexpr (!kGradient || kWidth == 1) {
    launch<T, kWidth, 512, kGradient>(args, rows, 0, stream);
  } else {
    constexpr int64_t kHalf = 111 * 1024, kWhole = 226 * 1024;
    const int64_t bytes = divide_up(args.vocabulary, kWidth) * 16;
    if (bytes <= kHalf) {
      launch<T, kWidth, 512, kGradient>(args, rows, bytes, stream);
    } else {
      launch<T, kWidth, 1024, kGradient>(args, rows, bytes < kWhole ? bytes : kWhole, stream);
    }
  }
}

template <class T, int kWidth>
void launch(const Operands<T>& args, int64_t rows, bool with_gradient, void* stream) {
  if (with_gradient) {
    launch<T, kWidth, true>(args, rows, stream);
  } else {
    launch<T, kWidth, false>(args, rows, stream);
  }
}

}  // namespace

void launch_cross_entropy(const CrossEntropyLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t cols = args.extent.cols;
  if (rows == 0 || cols == 0) return;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const Operands<T> operands{Rows<T>(args.logits),
                               args.targets,
                               args.weights,
                               args.losses,
                               static_cast<int>(args.vocabulary),
                               static_cast<int>(cols),
                               args.gradient_scale,
                               0};
    if (cols % kFullWidth<T> == 0 && rows_aligned(args.logits, rows, sizeof(T))) {
      launch<T, kFullWidth<T>>(operands, rows, args.with_gradient, stream);
    } else {
      launch<T, 1>(operands, rows, args.with_gradient, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
