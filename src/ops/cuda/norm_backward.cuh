#pragma once

#include "ops/cuda/async_copy.cuh"
#include "ops/cuda/column_sums.cuh"
#include "ops/cuda/norm_launch.h"
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

// The rows that a block works on next travel into shared memory while it works on the ones before. A slot is written
// and read by one thread alone, so that no barrier is needed.
template <class T, int kVectors, int kRows>
struct RowPipe {
  static constexpr int kWidth = kFullWidth<T>;
  enum Operand { kDy, kX, kResidual };
  uint4* slots;
  int threads;

  __device__ uint4* slot(Operand operand, int row, int vector) const {
    return slots + ((operand * kRows + row) * kVectors + vector) * threads + threadIdx.x;
  }

  __device__ void fetch(Operand operand, const Rows<T>& from, int64_t first_row, int64_t rows, int vectors) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const int vector = static_cast<int>(threadIdx.x) + v * threads;
        const bool present = first_row + r < rows && vector < vectors;
        copy_async(slot(operand, r, v), present ? from.at(first_row + r, int64_t{vector} * kWidth) : from.data,
                   present);
      }
    }
  }

  __device__ Vector<T, kWidth> take(Operand operand, int row, int vector) const {
    const uint4 bits = *slot(operand, row, vector);
    return {{bits.x, bits.y, bits.z, bits.w}};
  }
  // Four elements of it.
  __device__ Vector<T, 4> take_piece(Operand operand, int row, int vector, int piece) const {
    return load<4>(reinterpret_cast<const T*>(slot(operand, row, vector)) + 4 * piece);
  }
};

template <class T, int kWidth>
__device__ void set_piece(Vector<T, kWidth>& vector, int piece, const float (&values)[4]) {
  const Vector<T, 4> four = Vector<T, 4>::from(values);
#pragma unroll
  for (int i = 0; i < Vector<T, 4>::kWords; ++i) vector.word[piece * Vector<T, 4>::kWords + i] = four.word[i];
}

// At most 128 registers a thread: two blocks of 256, or one of 512, on a multiprocessor.
constexpr int backward_max_threads(int rows_at_once) {
  return rows_at_once == 4 ? 256 : 512;
}

// The compiler would rather keep all elements as floats, twice the registers, than widen them once more.
template <class T, int kWidth>
__device__ void keep_packed(Vector<T, kWidth>& vector) {
#pragma unroll
  for (int i = 0; i < Vector<T, kWidth>::kWords; ++i) asm volatile("" : "+r"(vector.word[i]));
}

// Sums of kFullWidth columns per vector, in shared memory: 16-byte pieces, those of one index side by side.
template <int kPieces>
struct SharedSums {
  float4* pieces;
  int threads;

  __device__ float4& at(int vector, int piece) const {
    return pieces[(vector * kPieces + piece) * threads + static_cast<int>(threadIdx.x)];
  }
  __device__ void clear(int vector) const {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) at(vector, p) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  __device__ void add(int vector, int piece, const float (&values)[4]) const {
    float4 sum = at(vector, piece);
    sum.x += values[0];
    sum.y += values[1];
    sum.z += values[2];
    sum.w += values[3];
    at(vector, piece) = sum;
  }
};

// The same in registers.
template <int kVectors, int kPieces>
struct RegisterSums {
  int threads;
  float sums[kVectors][kPieces][4] = {};

  __device__ float4 at(int vector, int piece) const {
    const float(&four)[4] = sums[vector][piece];
    return make_float4(four[0], four[1], four[2], four[3]);
  }
  __device__ void add(int vector, int piece, const float (&values)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[vector][piece][i] += values[i];
  }
};

template <bool kShared, int kVectors, int kPieces>
struct DxSums : RegisterSums<kVectors, kPieces> {
  __device__ DxSums(float4*, int) {}
};
template <int kVectors, int kPieces>
struct DxSums<true, kVectors, kPieces> : SharedSums<kPieces> {
  __device__ DxSums(float4* pieces, int threads) : SharedSums<kPieces>{pieces, threads} {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) this->clear(v);
  }
};

// kRows rows at a time, kVectors vectors of each per thread. kSharedDx: the sums of dx are in shared memory, too.
template <class T, int kVectors, int kRows, bool kCentered, bool kSharedDx>
__global__ void __launch_bounds__(backward_max_threads(kRows), 512 / backward_max_threads(kRows))
    norm_backward_kernel(BackwardOperands<T> args) {
  using Pipe = RowPipe<T, kVectors, kRows>;
  constexpr int kWidth = kFullWidth<T>;
  constexpr int kPieces = kWidth / 4;
  extern __shared__ uint4 dynamic_shared[];
  constexpr int kMeans = kCentered ? 2 : 1;  // of g = dy * weight (LayerNorm only), and of g * xhat
  __shared__ float reduced[2][kMeans * kRows][kWarp];

  int threads = static_cast<int>(blockDim.x);
  Pipe pipe{dynamic_shared, threads};
  auto* sums = reinterpret_cast<float4*>(dynamic_shared + 3 * kRows * kVectors * threads);
  SharedSums<kPieces> dweight{sums, threads};
  SharedSums<kPieces> dbias{sums + kVectors * kPieces * threads, threads};
  DxSums<kSharedDx, kVectors, kPieces> dx_sums(sums + (kCentered ? 2 : 1) * kVectors * kPieces * threads, threads);
  Vector<T, kWidth> weight[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int vector = static_cast<int>(threadIdx.x) + v * threads;
    weight[v] =
        vector < args.vectors ? load<kWidth>(args.weight + int64_t{vector} * kWidth) : Vector<T, kWidth>::filled(0.0f);
    dweight.clear(v);
    if constexpr (kCentered) dbias.clear(v);
  }

  const int64_t stride = int64_t{gridDim.x} * kRows;
  const auto fetch_inputs = [&](int64_t row) {
    pipe.fetch(Pipe::kDy, args.dy, row, args.rows, args.vectors);
    pipe.fetch(Pipe::kX, args.x, row, args.rows, args.vectors);
    commit_copies();
  };
  const auto fetch_residual = [&](int64_t row) {
    if (args.residual.data != nullptr) pipe.fetch(Pipe::kResidual, args.residual, row, args.rows, args.vectors);
    commit_copies();
  };

  const int64_t begin = int64_t{blockIdx.x} * kRows;
  fetch_inputs(begin);
  fetch_residual(begin);
  RowStatistics next[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) next[r] = statistics_of<T, kCentered>(args, begin + r);

  int parity = 0;
  for (int64_t row = begin; row < args.rows; row += stride, parity ^= 1) {
    // Unknown anew in each round, or the compiler keeps dozens of addresses in registers from round to round.
    asm volatile("" : "+r"(threads));
    pipe.threads = dweight.threads = dbias.threads = dx_sums.threads = threads;
    RowStatistics statistics[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      statistics[r] = next[r];
      next[r] = statistics_of<T, kCentered>(args, row + stride + r);
    }
    wait_copies<1>();  // dy and x are here, residual may still be on its way
    Vector<T, kWidth> dy[kRows][kVectors], x[kRows][kVectors];
    float means[kMeans * kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float plain = 0.0f;
      float along = 0.0f;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        dy[r][v] = pipe.take(Pipe::kDy, r, v);
        x[r][v] = pipe.take(Pipe::kX, r, v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const float g = dy[r][v][i] * weight[v][i];
          if constexpr (kCentered) plain += g;
          along += g * ((x[r][v][i] - statistics[r].mean) * statistics[r].rstd);
        }
      }
      means[kMeans * r] = plain;
      means[kMeans * r + kMeans - 1] = along;
    }
    fetch_inputs(row + stride);
    block_sums(means, reduced[parity]);
#pragma unroll
    for (int i = 0; i < kMeans * kRows; ++i) means[i] = __fdividef(means[i], static_cast<float>(args.cols));

    wait_copies<1>();  // residual is here
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        keep_packed(dy[r][v]);
        keep_packed(x[r][v]);
      }
      keep_packed(weight[v]);
      const int vector = static_cast<int>(threadIdx.x) + v * threads;
      Vector<T, kWidth> gradients[kRows];
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        float weight_sums[4] = {};
        float bias_sums[4] = {};
        float gradient_sums[4] = {};
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          Vector<T, 4> residual = Vector<T, 4>::filled(0.0f);
          if (args.residual.data != nullptr) residual = pipe.take_piece(Pipe::kResidual, r, v, p);
          float gradient[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float d = dy[r][v][4 * p + i];
            const float xhat = (x[r][v][4 * p + i] - statistics[r].mean) * statistics[r].rstd;
            const float plain = kCentered ? means[kMeans * r] : 0.0f;
            weight_sums[i] += d * xhat;
            bias_sums[i] += d;
            gradient[i] =
                statistics[r].rstd * (d * weight[v][4 * p + i] - plain - xhat * means[kMeans * r + kMeans - 1]) +
                residual[i];
            gradient_sums[i] += gradient[i];
          }
          set_piece(gradients[r], p, gradient);
        }
        dweight.add(v, p, weight_sums);
        if constexpr (kCentered) dbias.add(v, p, bias_sums);
        dx_sums.add(v, p, gradient_sums);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (row + r < args.rows && vector < args.vectors) {
          store(args.dx.at(row + r, int64_t{vector} * kWidth), gradients[r]);
        }
      }
    }
    fetch_residual(row + stride);
  }
  wait_copies<0>();

#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int vector = static_cast<int>(threadIdx.x) + v * threads;
    if (vector >= args.vectors) continue;
    const int64_t target = int64_t{blockIdx.x} * args.cols + int64_t{vector} * kWidth;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      *reinterpret_cast<float4*>(args.dweight + target + 4 * p) = dweight.at(v, p);
      if constexpr (kCentered) *reinterpret_cast<float4*>(args.dbias + target + 4 * p) = dbias.at(v, p);
      *reinterpret_cast<float4*>(args.dx_sums + target + 4 * p) = dx_sums.at(v, p);
    }
  }
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

// The most blocks that leave partial sums: two for each multiprocessor of a Hopper, more where they are small. It
// depends on no device, so that the sums do not either.
constexpr int64_t max_backward_blocks(int64_t vectors) {
  return vectors <= 128 ? 528 : 264;
}

// As many blocks as have equally many rounds of `rows_at_once` rows, give or take one.
inline int64_t even_blocks(int64_t rows, int64_t rows_at_once, int64_t max_blocks) {
  const int64_t groups = divide_up(rows, rows_at_once);
  return divide_up(groups, divide_up(groups, max_blocks));
}

// The number of blocks launched, or 0 where the rows do not fit into shared memory.
template <class T, int kVectors, int kRows, bool kCentered, bool kSharedDx>
int64_t try_launch_backward(const BackwardOperands<T>& args, int64_t max_blocks, void* stream) {
  constexpr int64_t kSums = (kCentered ? 2 : 1) + (kSharedDx ? 1 : 0);
  constexpr int64_t kSlots = 3 * kRows + kSums * kFullWidth<T> / 4;
  constexpr int64_t kReduced = 2 * (kCentered ? 2 : 1) * kRows * kWarp * static_cast<int64_t>(sizeof(float));
  const int64_t threads = divide_up(args.vectors, kVectors * kWarp) * kWarp;
  const int64_t bytes = kSlots * kVectors * threads * 16;
  const auto kernel = norm_backward_kernel<T, kVectors, kRows, kCentered, kSharedDx>;
  if (!reserve_shared_memory(kernel, bytes, kReduced)) return 0;
  const int64_t blocks = even_blocks(args.rows, kRows, max_blocks);
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), static_cast<size_t>(bytes),
           static_cast<cudaStream_t>(stream)>>>(args);
  return blocks;
}

// More rows at a time where rows are short, so that enough bytes are on their way.
template <class T, bool kCentered>
int64_t launch_backward_wide(const BackwardOperands<T>& args, int64_t max_blocks, void* stream) {
  if (args.vectors <= 256) return try_launch_backward<T, 1, 4, kCentered, false>(args, max_blocks, stream);
  if (args.vectors <= 1024) return try_launch_backward<T, 2, 2, kCentered, true>(args, max_blocks, stream);
  if (args.vectors > 2048) return 0;
  const int64_t blocks = try_launch_backward<T, 4, 1, kCentered, true>(args, max_blocks, stream);
  return blocks > 0 ? blocks : try_launch_backward<T, 4, 1, kCentered, false>(args, max_blocks, stream);
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
  const int64_t most = max_backward_blocks(operands.vectors);
  const int64_t max_blocks = args.max_partials < most ? args.max_partials : most;
  int64_t blocks = aligned ? launch_backward_wide<T, kCentered>(operands, max_blocks, stream) : 0;
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
