#include "ops/cuda/vocabulary/cross_entropy_launch.h"
#include "ops/cuda/vocabulary/cross_entropy_rows.cuh"

// Cross entropy where ranks divide the columns: a block per row, which reads it once in each of the two operations.

namespace megalith::ops::cuda {

namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 4;
constexpr float kNan = __builtin_nanf("");

// The columns of a part: the first `count` of them are in the vocabulary.
struct Columns {
  int first, count, padded;

  template <class Launch>
  explicit Columns(const Launch& args)
      : first(static_cast<int>(args.first_column)), count(0), padded(static_cast<int>(args.extent.cols)) {
    const int64_t left = args.vocabulary - args.first_column;
    if (left > 0) count = static_cast<int>(left < padded ? left : padded);
  }
};

// ---- what a part knows of each row -----------------------------------------------------------------------------

template <class T>
struct PartOperands {
  Rows<T> logits;
  const int32_t* targets;
  Rows<float> statistics;
  Columns columns;
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) part_kernel(PartOperands<T> args) {
  __shared__ MergeSpace<kThreads> space;
  const int64_t row = blockIdx.x;
  const T* logits = args.logits.at(row, 0);
  const SoftmaxSum softmax = block_merge(sum_vectors<kThreads, kWidth>(logits, args.columns.count), space);
  if (threadIdx.x != 0) return;
  const int target = args.targets[row] - args.columns.first;
  const bool has_target = 0 <= target && target < args.columns.count;
  *args.statistics.at(0, row) = softmax.maximum == kFarBelow ? -INFINITY : softmax.maximum;
  *args.statistics.at(1, row) = softmax.sum;
  *args.statistics.at(2, row) = has_target ? load<1>(logits + target)[0] : 0.0f;
}

// ---- losses, and the gradient of a part's columns --------------------------------------------------------------

template <class T>
struct OfPartsOperands {
  Rows<T> logits;
  const int32_t* targets;
  const float* weights;
  float* losses;
  Rows<const float> statistics;
  int ranks;
  int vocabulary;
  Columns columns;
  const double* gradient_scale;
};

struct WholeRow {
  SoftmaxSum softmax;
  float at_target;
};

// All lanes of a warp ask together, and all warps get the same.
__device__ WholeRow whole_row(const Rows<const float>& statistics, int ranks, int64_t row) {
  SoftmaxSum softmax;
  float at_target = 0.0f;
  for (int rank = static_cast<int>(threadIdx.x) % kWarp; rank < ranks; rank += kWarp) {
    // SoftmaxSum knows no -infinity.
    softmax.merge({fmaxf(*statistics.at(3 * rank, row), kFarBelow), *statistics.at(3 * rank + 1, row)});
    at_target += *statistics.at(3 * rank + 2, row);
  }
  return {warp_merge(softmax), warp_sum(at_target)};
}

template <class T, int kWidth>
__device__ void write_gradient(T* logits, int vectors, const RowGradient& gradient) {
  for (int first = static_cast<int>(threadIdx.x); first < vectors; first += kThreads * kUnroll) {
    Vector<T, kWidth> held[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int vector = first + i * kThreads;
      if (vector < vectors) held[i] = load_once<kWidth>(logits + int64_t{vector} * kWidth);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int vector = first + i * kThreads;
      if (vector < vectors) store(logits + int64_t{vector} * kWidth, gradient.of(held[i], vector));
    }
  }
}

// A target that is none makes loss and gradient NaN, where the row counts.
template <class T, int kWidth, bool kGradient>
__global__ void __launch_bounds__(kThreads) of_parts_kernel(OfPartsOperands<T> args) {
  const int64_t row = blockIdx.x;
  const WholeRow whole = whole_row(args.statistics, args.ranks, row);
  const int target = args.targets[row];
  const float weight = 0 <= target && target < args.vocabulary || args.weights[row] == 0.0f ? args.weights[row] : kNan;
  if (threadIdx.x == 0) {
    const auto log_sum = static_cast<float>(log(static_cast<double>(whole.softmax.sum)));
    args.losses[row] = weight == 0.0f ? 0.0f : weight * (log_sum + (whole.softmax.maximum - whole.at_target));
  }
  if constexpr (kGradient) {
    const float factor = weight * (args.gradient_scale == nullptr ? 1.0f : static_cast<float>(*args.gradient_scale));
    const RowGradient gradient{whole.softmax.maximum, factor, __fdividef(factor, whole.softmax.sum),
                               target - args.columns.first, args.columns.count};
    write_gradient<T, kWidth>(args.logits.at(row, 0), args.columns.padded / kWidth, gradient);
  }
}

template <class T>
bool is_wide(const Extent& extent, const Matrix& logits) {
  return extent.cols % kFullWidth<T> == 0 && rows_aligned(logits, extent.rows, sizeof(T));
}

}  // namespace

void launch_cross_entropy_part(const CrossEntropyPartLaunch& args, void* stream) {
  if (args.extent.rows == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto blocks = static_cast<unsigned>(args.extent.rows);
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const PartOperands<T> operands{Rows<T>(args.logits), args.targets, Rows<float>(args.statistics), Columns(args)};
    if (is_wide<T>(args.extent, args.logits)) {
      part_kernel<T, kFullWidth<T>><<<blocks, kThreads, 0, on>>>(operands);
    } else {
      part_kernel<T, 1><<<blocks, kThreads, 0, on>>>(operands);
    }
  });
}

void launch_cross_entropy_of_parts(const CrossEntropyOfPartsLaunch& args, void* stream) {
  if (args.extent.rows == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto blocks = static_cast<unsigned>(args.extent.rows);
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const OfPartsOperands<T> operands{Rows<T>(args.logits),
                                      args.targets,
                                      args.weights,
                                      args.losses,
                                      Rows<const float>(args.statistics),
                                      static_cast<int>(args.ranks),
                                      static_cast<int>(args.vocabulary),
                                      Columns(args),
                                      args.gradient_scale};
    if (!args.with_gradient) {
      of_parts_kernel<T, 1, false><<<blocks, kWarp, 0, on>>>(operands);
    } else if (is_wide<T>(args.extent, args.logits)) {
      of_parts_kernel<T, kFullWidth<T>, true><<<blocks, kThreads, 0, on>>>(operands);
    } else {
      of_parts_kernel<T, 1, true><<<blocks, kThreads, 0, on>>>(operands);
    }
  });
}

}  // namespace megalith::ops::cuda
