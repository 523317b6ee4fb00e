#pragma once

#include "ops/cuda/vector.cuh"

// The kernel of every operation that makes an element out of those in its place. An operation is a struct of pointers
// with two templates over the width of a vector:
//   template <int kWidth> struct Loaded;                              what it reads of one vector
//   template <int kWidth> Loaded<kWidth> load(int64_t row, int64_t col) const;
//   template <int kWidth> void store(int64_t row, int64_t col, const Loaded<kWidth>&) const;
// All loads of a thread are in flight before the first is used.

namespace megalith::ops::cuda {

constexpr int kElementwiseThreads = 256;
constexpr int kElementwiseVectors = 4;  // per thread

template <int kWidth, int kVectors, class Operation>
__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_kernel(Operation operation, int64_t rows, int64_t vectors, uint32_t chunks) {
  const uint32_t group = blockIdx.x / chunks;
  const uint32_t chunk = blockIdx.x - group * chunks;
  const int64_t row = int64_t{group} * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const int64_t first = int64_t{chunk} * blockDim.x * kVectors + threadIdx.x;
  typename Operation::template Loaded<kWidth> held[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t vector = first + int64_t{i} * blockDim.x;
    if (vector < vectors) held[i] = operation.template load<kWidth>(row, vector * kWidth);
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t vector = first + int64_t{i} * blockDim.x;
    if (vector < vectors) operation.template store<kWidth>(row, vector * kWidth, held[i]);
  }
}

// A block covers a span of one row, or several rows where they are short. kVectors: of each thread.
template <int kWidth, int kVectors = kElementwiseVectors, class Operation>
void launch_elementwise(const Operation& operation, int64_t rows, int64_t cols, void* stream) {
  if (rows == 0 || cols == 0) return;
  const int64_t vectors = cols / kWidth;
  unsigned across = kWidth == 1 ? 32 : 16;
  while (across < kElementwiseThreads && int64_t{across} * kVectors < vectors) across *= 2;
  const dim3 threads(across, kElementwiseThreads / across);
  const int64_t chunks = divide_up(vectors, int64_t{across} * kVectors);
  const int64_t blocks = divide_up(rows, threads.y) * chunks;
  elementwise_kernel<kWidth, kVectors>
      <<<static_cast<unsigned>(blocks), threads, 0, static_cast<cudaStream_t>(stream)>>>(operation, rows, vectors,
                                                                                         static_cast<uint32_t>(chunks));
}

}  // namespace megalith::ops::cuda
