#pragma once

#include <type_traits>

#include "ops/cuda/async_copy.cuh"
#include "ops/cuda/column_sums.cuh"
#include "ops/cuda/norm/norm_launch.h"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/shared_memory.cuh"
#include "ops/cuda/vector.cuh"

// The backward pass of the norms, in one read of dy, x and residual. A block stays for many rows and keeps the column
// sums that dweight, dbias and dx_sums need; each block leaves one row of partial sums.

namespace megalith::ops::cuda {

namespace {

template <class T>
struct BackwardOperands {
  Rows<T> dy, x, residual, dx;
  const T* weight;
  const float* mean;
  const float* rstd;
  float* dweight;  // partials: a row per block
  float* dbias;
  float* dx_sums;
  int64_t rows;
  int64_t cols;
  int vectors;
};

struct RowStatistics {
  float mean, rstd;
};

// Rows beyond the last have rstd = 0, which makes their gradient 0.
template <class T, bool kCentered>
__device__ RowStatistics statistics_of(const BackwardOperands<T>& args, int64_t row) {
  if (row >= args.rows) return {0.0f, 0.0f};
  return {kCentered ? __ldg(args.mean + row) : 0.0f, __ldg(args.rstd + row)};
}

// How a block works: kGroups groups of kThreads threads, each group on a row of its own, kVectors vectors of it per
// thread; kStages rows of each group are in shared memory or on their way. kSharedDx: the sums of dx, too, are in
// shared memory, where registers do not suffice.
template <int kVectorsOf, int kThreadsOf, int kGroupsOf, int kStagesOf, bool kSharedDxOf = false>
struct BackwardLayout {
  static constexpr int kVectors = kVectorsOf;
  static constexpr int kThreads = kThreadsOf;
  static constexpr int kGroups = kGroupsOf;
  static constexpr int kStages = kStagesOf;
  static constexpr bool kSharedDx = kSharedDxOf;
  static constexpr int kWarps = kThreads / kWarp;
  static constexpr int kBlock = kThreads * kGroups;
  static constexpr int kRing = 3 * kStages * kVectors * kBlock;  // slots of 16 bytes
};

// The rows that come next travel into shared memory while a group works on the ones before. A slot is written and read
// by one thread alone, so that no barrier is needed.
template <class T, class Layout>
struct RowRing {
  static constexpr int kWidth = kFullWidth<T>;
  static constexpr int kStage = 3 * Layout::kVectors * Layout::kBlock;
  enum Operand { kDy, kX, kResidual };
  uint4* slots;  // this thread's first

  __device__ uint4* slot(int stage, Operand operand, int vector) const {
    return slots + stage * kStage + (operand * Layout::kVectors + vector) * Layout::kBlock;
  }

  __device__ void fetch(int stage, Operand operand, const Rows<T>& from, int64_t row, int64_t rows, int vectors) const {
    const int thread = static_cast<int>(threadIdx.x);
    const T* begin = from.at(min(row, rows - 1), thread * kWidth);
#pragma unroll
    for (int v = 0; v < Layout::kVectors; ++v) {
      const bool present = row < rows && thread + v * Layout::kThreads < vectors;
      copy_async(slot(stage, operand, v), present ? begin + v * Layout::kThreads * kWidth : from.data, present);
    }
  }

  __device__ Vector<T, kWidth> take(int stage, Operand operand, int vector) const {
    const uint4 bits = *slot(stage, operand, vector);
    return {{bits.x, bits.y, bits.z, bits.w}};
  }
};

// The compiler would rather keep all elements as floats, twice the registers, than widen them once more.
template <class T, int kWidth>
__device__ void keep_packed(Vector<T, kWidth>& vector) {
#pragma unroll
  for (int i = 0; i < Vector<T, kWidth>::kWords; ++i) asm volatile("" : "+r"(vector.word[i]));
}

// Sums of a thread's columns, in registers.
template <int kVectors, int kWidth>
struct RegisterSums {
  float sums[kVectors][kWidth] = {};

  __device__ explicit RegisterSums(float4*) {}
  __device__ float4 piece(int vector, int piece) const {
    const float* four = sums[vector] + 4 * piece;
    return make_float4(four[0], four[1], four[2], four[3]);
  }
  __device__ void add(int vector, const float (&values)[kWidth]) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sums[vector][i] += values[i];
  }
};

// The same in shared memory: pieces of 16 bytes, those of one index side by side.
template <int kVectors, int kWidth, int kBlock>
struct SharedSums {
  static constexpr int kPieces = kWidth / 4;
  float4* pieces;  // this thread's first

  __device__ explicit SharedSums(float4* first) : pieces(first) {
#pragma unroll
    for (int i = 0; i < kVectors * kPieces; ++i) pieces[i * kBlock] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  __device__ float4 piece(int vector, int piece) const {
    return pieces[(vector * kPieces + piece) * kBlock];
  }
  __device__ void add(int vector, const float (&values)[kWidth]) const {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      float4 sum = piece(vector, p);
      sum.x += values[4 * p];
      sum.y += values[4 * p + 1];
      sum.z += values[4 * p + 2];
      sum.w += values[4 * p + 3];
      pieces[(vector * kPieces + p) * kBlock] = sum;
    }
  }
};

// Where nobody asks for them.
struct NoSums {
  __device__ explicit NoSums(float4*) {}
  template <int kWidth>
  __device__ void add(int, const float (&)[kWidth]) const {}
};

// Replaces each value by its sum over the group. `shared` belongs to this call alone until the group has come past one
// more barrier.
template <class Layout, int kCount>
__device__ void group_sums(float (&values)[kCount], float (*shared)[kWarp]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = warp_sum(values[i]);
  if constexpr (Layout::kWarps > 1) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int first = static_cast<int>(threadIdx.y) * Layout::kWarps;
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) shared[i][first + threadIdx.x / kWarp] = values[i];
    }
    asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "n"(Layout::kThreads) : "memory");
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = 0.0f;
#pragma unroll
      for (int warp = 0; warp < Layout::kWarps; ++warp) values[i] += shared[i][first + warp];
    }
  }
}

// Writes the sums of the block's columns, the groups' added in their order. `space` is the ring, no longer in use.
template <class Layout, int kWidth, class Sums>
__device__ void leave_sums(const Sums& sums, float* to, int vectors, float4* space) {
  constexpr int kPieces = kWidth / 4;
  constexpr int kAll = Layout::kVectors * kPieces * Layout::kThreads;  // in the order: vector, piece, thread
  const int thread = static_cast<int>(threadIdx.y) * Layout::kThreads + static_cast<int>(threadIdx.x);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Layout::kVectors * kPieces; ++i) {
    space[threadIdx.y * kAll + i * Layout::kThreads + threadIdx.x] = sums.piece(i / kPieces, i % kPieces);
  }
  __syncthreads();
  // In the order of the columns: lanes side by side write whole sectors.
#pragma unroll 1
  for (int i = thread; i < vectors * kPieces; i += Layout::kBlock) {
    const int vector = i / kPieces;
    const int slot = (vector / Layout::kThreads * kPieces + i % kPieces) * Layout::kThreads + vector % Layout::kThreads;
    float4 total = space[slot];
#pragma unroll
    for (int group = 1; group < Layout::kGroups; ++group) {
      const float4 other = space[group * kAll + slot];
      total.x += other.x;
      total.y += other.y;
      total.z += other.z;
      total.w += other.w;
    }
    __stcg(reinterpret_cast<float4*>(to) + i, total);
  }
}

template <class T, bool kCentered, bool kSumsDx, class Layout>
__global__ void __launch_bounds__(Layout::kBlock)
    norm_backward_kernel(const __grid_constant__ BackwardOperands<T> args) {
  using Ring = RowRing<T, Layout>;
  constexpr int kWidth = kFullWidth<T>;
  constexpr int kVectors = Layout::kVectors;
  constexpr int kMeans = kCentered ? 2 : 1;  // of g = dy * weight (LayerNorm only), and of g * xhat
  extern __shared__ uint4 dynamic_shared[];
  __shared__ float reduced[2][kMeans][kWarp];
  const int thread = static_cast<int>(threadIdx.x);
  const int place = static_cast<int>(threadIdx.y) * Layout::kThreads + thread;
  const Ring ring{dynamic_shared + place};
  const bool has_residual = args.residual.data != nullptr;

  using InRegisters = RegisterSums<kVectors, kWidth>;
  using InShared = SharedSums<kVectors, kWidth, Layout::kBlock>;
  InRegisters dweight(nullptr), dbias(nullptr);
  std::conditional_t<!kSumsDx, NoSums, std::conditional_t<Layout::kSharedDx, InShared, InRegisters>> dx_sums(
      reinterpret_cast<float4*>(dynamic_shared + Layout::kRing) + place);
  Vector<T, kWidth> weight[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int vector = thread + v * Layout::kThreads;
    weight[v] =
        vector < args.vectors ? load<kWidth>(args.weight + int64_t{vector} * kWidth) : Vector<T, kWidth>::filled(0.0f);
  }

  const auto fetch = [&](int64_t row, int stage) {
    ring.fetch(stage, Ring::kDy, args.dy, row, args.rows, args.vectors);
    ring.fetch(stage, Ring::kX, args.x, row, args.rows, args.vectors);
    if (has_residual) ring.fetch(stage, Ring::kResidual, args.residual, row, args.rows, args.vectors);
    commit_copies();
  };
  const int64_t stride = int64_t{gridDim.x} * Layout::kGroups;
  const int64_t begin = int64_t{blockIdx.x} * Layout::kGroups + threadIdx.y;
#pragma unroll
  for (int stage = 0; stage < Layout::kStages - 1; ++stage) fetch(begin + stage * stride, stage);
  RowStatistics next = statistics_of<T, kCentered>(args, begin);

  int parity = 0;
  int stage = 0;
  for (int64_t row = begin; row < args.rows; row += stride, parity ^= 1) {
    const auto [mean, rstd] = next;
    next = statistics_of<T, kCentered>(args, row + stride);
    fetch(row + (Layout::kStages - 1) * stride, stage == 0 ? Layout::kStages - 1 : stage - 1);
    wait_copies<Layout::kStages - 1>();
    float plain = 0.0f;
    float along = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const Vector<T, kWidth> dy = ring.take(stage, Ring::kDy, v);
      const Vector<T, kWidth> x = ring.take(stage, Ring::kX, v);
      keep_packed(weight[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const float g = dy[i] * weight[v][i];
        if constexpr (kCentered) plain += g;
        along += g * (x[i] - mean);
      }
    }
    float means[kMeans];
    means[0] = plain;
    means[kMeans - 1] = along;
    group_sums<Layout>(means, reduced[parity]);

    // dx = rstd * (g - mean of g - xhat * mean of (g * xhat)) + residual
    const float share = __fdividef(rstd, static_cast<float>(args.cols));
    const float slope = -share * rstd * rstd * means[kMeans - 1];
    const float offset = kCentered ? -share * means[0] : 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      keep_packed(weight[v]);
      const Vector<T, kWidth> dy = ring.take(stage, Ring::kDy, v);
      const Vector<T, kWidth> x = ring.take(stage, Ring::kX, v);
      float gradients[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const float centered = x[i] - mean;
        dweight.sums[v][i] += dy[i] * (centered * rstd);
        if constexpr (kCentered) dbias.sums[v][i] += dy[i];
        gradients[i] = dy[i] * weight[v][i] * rstd + (centered * slope + offset);
      }
      if (has_residual) {
        const Vector<T, kWidth> residual = ring.take(stage, Ring::kResidual, v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) gradients[i] += residual[i];
      }
      dx_sums.add(v, gradients);
      const int vector = thread + v * Layout::kThreads;
      if (vector < args.vectors) store(args.dx.at(row, vector * kWidth), Vector<T, kWidth>::from(gradients));
    }
    stage = stage + 1 == Layout::kStages ? 0 : stage + 1;
  }
  wait_copies<0>();

  auto* space = reinterpret_cast<float4*>(dynamic_shared);
  const int64_t partial = int64_t{blockIdx.x} * args.cols;
  leave_sums<Layout, kWidth>(dweight, args.dweight + partial, args.vectors, space);
  if constexpr (kCentered) leave_sums<Layout, kWidth>(dbias, args.dbias + partial, args.vectors, space);
  if constexpr (kSumsDx) leave_sums<Layout, kWidth>(dx_sums, args.dx_sums + partial, args.vectors, space);
}

// Any shape and alignment: rows are read twice, and the column sums live in the partials themselves.
constexpr int kBackwardAnyThreads = 256;

template <class T, bool kCentered>
__global__ void __launch_bounds__(kBackwardAnyThreads) norm_backward_any_kernel(BackwardOperands<T> args) {
  __shared__ float reduced[2][2][kWarp];
  const int64_t partial = int64_t{blockIdx.x} * args.cols;
  for (int64_t col = threadIdx.x; col < args.cols; col += kBackwardAnyThreads) {
    args.dweight[partial + col] = args.dbias[partial + col] = args.dx_sums[partial + col] = 0.0f;
  }
  int parity = 0;
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x, parity ^= 1) {
    const RowStatistics statistics = statistics_of<T, kCentered>(args, row);
    float means[2] = {};
    for (int64_t col = threadIdx.x; col < args.cols; col += kBackwardAnyThreads) {
      const float g = load<1>(args.dy.at(row, col))[0] * load<1>(args.weight + col)[0];
      if constexpr (kCentered) means[0] += g;
      means[1] += g * ((load<1>(args.x.at(row, col))[0] - statistics.mean) * statistics.rstd);
    }
    block_sums(means, reduced[parity]);
    for (int i = 0; i < 2; ++i) means[i] = __fdividef(means[i], static_cast<float>(args.cols));
    for (int64_t col = threadIdx.x; col < args.cols; col += kBackwardAnyThreads) {
      const float d = load<1>(args.dy.at(row, col))[0];
      const float xhat = (load<1>(args.x.at(row, col))[0] - statistics.mean) * statistics.rstd;
      float gradient = statistics.rstd * (d * load<1>(args.weight + col)[0] - means[0] - xhat * means[1]);
      if (args.residual.data != nullptr) gradient += load<1>(args.residual.at(row, col))[0];
      args.dweight[partial + col] += d * xhat;
      if constexpr (kCentered) args.dbias[partial + col] += d;
      args.dx_sums[partial + col] += gradient;
      const float values[1] = {gradient};
      store(args.dx.at(row, col), Vector<T, 1>::from(values));
    }
  }
}

// One for each multiprocessor of a Hopper. It depends on no device, so that the sums do not either.
constexpr int64_t kBackwardBlocks = 132;

// As many blocks as have equally many rounds of kGroups rows, give or take one.
inline int64_t even_blocks(int64_t rows, int64_t rows_at_once, int64_t max_blocks) {
  const int64_t groups = divide_up(rows, rows_at_once);
  return divide_up(groups, divide_up(groups, max_blocks));
}

// The number of blocks launched, or 0 where the rows do not fit into shared memory.
template <class T, bool kCentered, bool kSumsDx, class Layout>
int64_t try_launch_backward(const BackwardOperands<T>& args, int64_t max_blocks, void* stream) {
  constexpr int64_t kReduced = 2 * (kCentered ? 2 : 1) * kWarp * static_cast<int64_t>(sizeof(float));
  constexpr int64_t kSums = kSumsDx && Layout::kSharedDx ? Layout::kVectors * Layout::kBlock * (kFullWidth<T> / 4) : 0;
  constexpr int64_t kBytes = (Layout::kRing + kSums) * 16;
  const auto kernel = norm_backward_kernel<T, kCentered, kSumsDx, Layout>;
  if (!reserve_shared_memory(kernel, kBytes, kReduced)) return 0;
  const int64_t blocks = even_blocks(args.rows, Layout::kGroups, max_blocks);
  kernel<<<static_cast<unsigned>(blocks), dim3(Layout::kThreads, Layout::kGroups), static_cast<size_t>(kBytes),
           static_cast<cudaStream_t>(stream)>>>(args);
  return blocks;
}

// Few threads with many columns each make the sums over a row short; three or four warps for each scheduler hide what
// is left of them.
template <class T, bool kCentered, bool kSumsDx>
int64_t launch_backward_wide(const BackwardOperands<T>& args, int64_t max_blocks, void* stream) {
  const auto launch = [&](auto layout) {
    return try_launch_backward<T, kCentered, kSumsDx, decltype(layout)>(args, max_blocks, stream);
  };
  if (args.vectors <= 32) return launch(BackwardLayout<1, 32, 12, 3>());
  if (args.vectors <= 64) return launch(BackwardLayout<2, 32, 12, 3>());
  if (args.vectors <= 96) return launch(BackwardLayout<3, 32, 12, 2, true>());
  if (args.vectors <= 128) return launch(BackwardLayout<2, 64, 8, 3>());
  if (args.vectors <= 288) return launch(BackwardLayout<3, 96, 4, 3>());
  if (args.vectors <= 512) {
    const int64_t blocks = launch(BackwardLayout<4, 128, 2, 4>());
    return blocks > 0 ? blocks : launch(BackwardLayout<2, 256, 1, 3>());
  }
  if (args.vectors <= 672) return launch(BackwardLayout<3, 224, 1, 3>());
  if (args.vectors <= 1056) return launch(BackwardLayout<3, 352, 1, 3>());
  if (args.vectors <= 1536) return launch(BackwardLayout<6, 256, 1, 2, true>());
  if (args.vectors <= 2048) return launch(BackwardLayout<4, 512, 1, 2>());
  return 0;
}

template <class T, bool kCentered>
void launch_backward(const NormBackwardLaunch& args, void* stream) {
  const auto [rows, cols, element] = args.extent;
  const int64_t partials = args.max_partials * cols;
  const BackwardOperands<T> operands{Rows<T>(args.dy),
                                     Rows<T>(args.x),
                                     Rows<T>(args.residual),
                                     Rows<T>(args.dx),
                                     static_cast<const T*>(args.weight),
                                     args.mean,
                                     args.rstd,
                                     args.partials,
                                     args.partials + partials,
                                     args.partials + 2 * partials,
                                     rows,
                                     cols,
                                     static_cast<int>(cols / kFullWidth<T>)};
  const bool aligned = cols % kFullWidth<T> == 0 && rows_aligned(args.dy, rows, sizeof(T)) &&
                       rows_aligned(args.x, rows, sizeof(T)) && rows_aligned(args.residual, rows, sizeof(T)) &&
                       rows_aligned(args.dx, rows, sizeof(T)) && address_aligned(args.weight) &&
                       address_aligned(args.partials);
  const int64_t max_blocks = args.max_partials < kBackwardBlocks ? args.max_partials : kBackwardBlocks;
  int64_t blocks = 0;
  if (aligned && (kCentered || args.dx_sums != nullptr)) {
    blocks = launch_backward_wide<T, kCentered, true>(operands, max_blocks, stream);
  } else if (aligned) {
    blocks = launch_backward_wide<T, false, false>(operands, max_blocks, stream);
  }
  if (blocks == 0) {
    blocks = max_blocks;
    norm_backward_any_kernel<T, kCentered>
        <<<static_cast<unsigned>(blocks), kBackwardAnyThreads, 0, static_cast<cudaStream_t>(stream)>>>(operands);
  }
  Totals totals;
  totals.add(operands.dweight, args.dweight);
  if (kCentered) totals.add(operands.dbias, args.dbias);
  totals.add(operands.dx_sums, args.dx_sums);
  launch_add_totals(totals, blocks, cols, stream);
}

}  // namespace

}  // namespace megalith::ops::cuda
