#pragma once

#include "ops/cuda/vector.cuh"

// Sums over rows in a fixed order: first by each of a fixed number of blocks into a row of partial sums, then over
// these.

namespace megalith::ops::cuda {

constexpr int kSumLanes = 128;  // columns (or vectors of them) side by side: long stretches of a row please the memory
constexpr int kSumParts = 2;    // rows that a block sums at the same time

// Two for each multiprocessor of a Hopper, so that all are at work at the same time. It depends on no device, so that
// the sums do not either.
constexpr int64_t kSumBlocks = 264;

// One block: kSumLanes vectors of every `partial_rows`-th group of kSumParts * kUnroll rows. All blocks sweep over the
// matrix side by side: where each had rows of its own, far from those of the others, loads and stores would get in each
// other's way (57 % of the copy rate, not 90 %). The operation (elementwise.cuh) gives, through store(), the values
// that are summed.
template <int kWidth, int kUnroll, class Operation>
__global__ void __launch_bounds__(kSumLanes* kSumParts)
    sum_columns_kernel(Operation operation, int64_t rows, int64_t cols, uint32_t spans, int64_t partial_rows,
                       float* partials) {
  const uint32_t partial_row = blockIdx.x / spans;
  const uint32_t span = blockIdx.x - partial_row * spans;
  const int64_t col = (int64_t{span} * kSumLanes + threadIdx.x) * kWidth;

  constexpr int kRows = kSumParts * kUnroll;
  float sums[kWidth] = {};
  if (col < cols) {
    using Loaded = typename Operation::template Loaded<kWidth>;
    Loaded next[kUnroll];
    const auto fetch = [&](int64_t row) {
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (row + i * kSumParts < rows) next[i] = operation.template load<kWidth>(row + i * kSumParts, col);
      }
    };
    const int64_t step = partial_rows * kRows;
    int64_t row = int64_t{partial_row} * kRows + threadIdx.y;
    fetch(row);
    for (; row < rows; row += step) {
      Loaded held[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) held[i] = next[i];
      fetch(row + step);
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (row + i * kSumParts >= rows) continue;
        const Vector<float, kWidth> values = operation.template store<kWidth>(row + i * kSumParts, col, held[i]);
#pragma unroll
        for (int c = 0; c < kWidth; ++c) sums[c] += values[c];
      }
    }
  }

  __shared__ float parts[kSumParts][kWidth][kSumLanes];
#pragma unroll
  for (int c = 0; c < kWidth; ++c) parts[threadIdx.y][c][threadIdx.x] = sums[c];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y) * kSumLanes + static_cast<int>(threadIdx.x);
  for (int i = thread; i < kSumLanes * kWidth; i += kSumLanes * kSumParts) {
    const int64_t target = int64_t{span} * kSumLanes * kWidth + i;
    if (target >= cols) continue;
    float total = 0.0f;
#pragma unroll
    for (int part = 0; part < kSumParts; ++part) total += parts[part][i % kWidth][i / kWidth];
    partials[partial_row * cols + target] = total;
  }
}

// The number of rows of partial sums, at most `max_partials`. kUnroll: rows of a thread that are on their way while it
// works on as many.
template <int kWidth, int kUnroll, class Operation>
int64_t launch_sum_columns(const Operation& operation, int64_t rows, int64_t cols, float* partials,
                           int64_t max_partials, void* stream) {
  const int64_t spans = divide_up(cols, int64_t{kSumLanes} * kWidth);
  const int64_t wanted = spans < kSumBlocks ? kSumBlocks / spans : 1;
  const int64_t partial_rows = wanted < max_partials ? wanted : max_partials;
  sum_columns_kernel<kWidth, kUnroll><<<static_cast<unsigned>(partial_rows * spans), dim3(kSumLanes, kSumParts), 0,
                                        static_cast<cudaStream_t>(stream)>>>(
      operation, rows, cols, static_cast<uint32_t>(spans), partial_rows, partials);
  return partial_rows;
}

constexpr int kMaxTotals = 3;

// totals[i] += the sum of the `rows` rows of partials[i]; absent where null.
struct Totals {
  const float* partials[kMaxTotals] = {};
  float* totals[kMaxTotals] = {};
  int count = 0;

  void add(const float* from, float* to) {
    if (to == nullptr) return;
    partials[count] = from;
    totals[count++] = to;
  }
};

constexpr int kTotalLanes = 32;
constexpr int kTotalParts = 8;  // small blocks, all at work at the same time

static __global__ void __launch_bounds__(kTotalLanes* kTotalParts)
    add_totals_kernel(const __grid_constant__ Totals totals, int64_t rows, int64_t cols) {
  const int64_t col = int64_t{blockIdx.x} * kTotalLanes + threadIdx.x;
  const float* partials = totals.partials[blockIdx.y];
  __shared__ float parts[kTotalParts][kTotalLanes];
  float sum = 0.0f;
  if (col < cols) {
#pragma unroll 16
    for (int64_t row = threadIdx.y; row < rows; row += kTotalParts) sum += partials[row * cols + col];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || col >= cols) return;
  float total = 0.0f;
#pragma unroll
  for (int part = 0; part < kTotalParts; ++part) total += parts[part][threadIdx.x];
  totals.totals[blockIdx.y][col] += total;
}

inline void launch_add_totals(const Totals& totals, int64_t rows, int64_t cols, void* stream) {
  if (totals.count == 0 || cols == 0) return;
  const dim3 blocks(static_cast<unsigned>(divide_up(cols, kTotalLanes)), static_cast<unsigned>(totals.count));
  add_totals_kernel<<<blocks, dim3(kTotalLanes, kTotalParts), 0, static_cast<cudaStream_t>(stream)>>>(totals, rows,
                                                                                                      cols);
}

}  // namespace megalith::ops::cuda
