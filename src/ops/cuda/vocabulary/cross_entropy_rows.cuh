#pragma once

#include <cfloat>

#include "ops/cuda/reduce.cuh"
#include "ops/cuda/vector.cuh"

// What the kernels of cross entropy do with a row of logits.

namespace megalith::ops::cuda {

// exp(x - maximum) = 2^(x * kLog2e - shift_of(maximum)): two instructions, of which these kernels have few to spare. A
// shift is rounded, but the same in a sum and in its terms.
constexpr float kLog2e = 1.4426950408889634f;

__device__ inline float power_of_two(float exponent) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  return power;
}
__device__ inline float shift_of(float maximum) {
  return __fmul_rn(maximum, kLog2e);
}
__device__ inline float exponential(float x, float shift) {
  return power_of_two(__fmaf_rn(x, kLog2e, -shift));
}

// Below any logit, and finite times kLog2e.
constexpr float kFarBelow = -0.5f * FLT_MAX;

// sum = the sum of exp(x - maximum). The maximum begins at a finite number, not at -infinity, so that logits of
// -infinity count as nothing; a NaN, which no maximum sees, reaches the sum.
struct SoftmaxSum {
  float maximum = kFarBelow;
  float sum = 0.0f;

  __device__ void raise(float higher) {
    sum *= power_of_two(shift_of(maximum) - shift_of(higher));
    maximum = higher;
  }
  __device__ void merge(SoftmaxSum other) {
    const float higher = fmaxf(maximum, other.maximum);
    raise(higher);
    other.raise(higher);
    sum += other.sum;
  }

  // `highest` is the largest of the values.
  template <int kWidth>
  __device__ void add(const float (&values)[kWidth], float highest) {
    if (highest > maximum) raise(highest);
    const float shift = shift_of(maximum);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += exponential(values[i], shift);
  }
};

__device__ inline SoftmaxSum warp_merge(SoftmaxSum value) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2) {
    value.merge({__shfl_xor_sync(kAllLanes, value.maximum, lane), __shfl_xor_sync(kAllLanes, value.sum, lane)});
  }
  return value;
}

template <int kThreads>
struct MergeSpace {
  float maxima[kThreads / kWarp], sums[kThreads / kWarp];
};

// `space` belongs to this call alone until the block has come past one more barrier.
template <int kThreads>
__device__ SoftmaxSum block_merge(SoftmaxSum value, MergeSpace<kThreads>& space) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  value = warp_merge(value);
  if (lane == 0) {
    space.maxima[threadIdx.x / kWarp] = value.maximum;
    space.sums[threadIdx.x / kWarp] = value.sum;
  }
  __syncthreads();
  SoftmaxSum other;
  if (lane < kThreads / kWarp) other = {space.maxima[lane], space.sums[lane]};
  return warp_merge(other);
}

template <int kWidth>
__device__ float largest(const float (&values)[kWidth]) {
  float highest = values[0];
#pragma unroll
  for (int i = 1; i < kWidth; ++i) highest = fmaxf(highest, values[i]);
  return highest;
}
// Two at a time.
__device__ inline float largest(const Vector<bf16, 8>& in) {
  const auto pair = [&](int i) { return *reinterpret_cast<const __nv_bfloat162*>(&in.word[i]); };
  const __nv_bfloat162 highest = __hmax2(__hmax2(pair(0), pair(1)), __hmax2(pair(2), pair(3)));
  return fmaxf(__low2float(highest), __high2float(highest));
}

// A vector without padding.
template <class T, int kWidth>
__device__ void add_inner(SoftmaxSum& softmax, const Vector<T, kWidth>& in) {
  float values[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = in[i];
  if constexpr (sizeof(T) == 2 && kWidth == 8) {
    softmax.add(values, largest(in));
  } else {
    softmax.add(values, largest(values));
  }
}

template <class T, int kWidth>
__device__ void add_vector(SoftmaxSum& softmax, const Vector<T, kWidth>& in, int vector, int vocabulary) {
  if ((vector + 1) * kWidth <= vocabulary) return add_inner(softmax, in);
  float values[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = vector * kWidth + i < vocabulary ? in[i] : -INFINITY;
  softmax.add(values, largest(values));
}

constexpr int kSumUnroll = 4;

// The sum over every kThreads-th vector of a row, from this thread's on.
template <int kThreads, int kWidth, class T>
__device__ SoftmaxSum sum_vectors(const T* logits, int vocabulary) {
  SoftmaxSum softmax;
  const int vectors = (vocabulary + kWidth - 1) / kWidth;
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += kThreads * kSumUnroll) {
    Vector<T, kWidth> held[kSumUnroll];
#pragma unroll
    for (int i = 0; i < kSumUnroll; ++i) {
      const int vector = first + i * kThreads;
      if (vector < vectors) held[i] = load_once<kWidth>(logits + int64_t{vector} * kWidth);
    }
#pragma unroll
    for (int i = 0; i < kSumUnroll; ++i) {
      const int vector = first + i * kThreads;
      if (vector < vectors) add_vector(softmax, held[i], vector, vocabulary);
    }
  }
  return softmax;
}

struct RowGradient {
  float maximum;
  float factor;  // weight * *gradient_scale; 0: the row is cleared, whatever is in it
  float share;   // factor / sum
  int target;    // need not be one of the columns
  int vocabulary;

  template <class T, int kWidth>
  __device__ Vector<T, kWidth> of(const Vector<T, kWidth>& in, int vector) const {
    if (factor == 0.0f) return Vector<T, kWidth>::filled(0.0f);
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = share * exponential(in[i], shift_of(maximum));
    const int first = vector * kWidth;
    if (first <= target && target < first + kWidth) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (first + i == target) values[i] -= factor;
      }
    }
    if (first + kWidth > vocabulary) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if (first + i >= vocabulary) values[i] = 0.0f;
      }
    }
    return Vector<T, kWidth>::from(values);
  }
};

// The gradient of what has neither the target nor padding, in a row whose factor is positive. The share is part of the
// exponent: an instruction less for each element, and as exact as bf16 can tell.
struct InnerGradient {
  float shift;

  __device__ explicit InnerGradient(const RowGradient& row) : shift(shift_of(row.maximum) - log2f(row.share)) {}
  template <int kWidth>
  __device__ Vector<bf16, kWidth> of(const Vector<bf16, kWidth>& in) const {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = exponential(in[i], shift);
    return Vector<bf16, kWidth>::from(values);
  }
};

}  // namespace megalith::ops::cuda
