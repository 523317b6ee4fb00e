#pragma once

#include "ops/cuda/norm/norm_launch.h"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/vector.cuh"

// The forward pass of the norms: a row belongs to a warp, or to a block where it is long.

namespace megalith::ops::cuda {

namespace {

constexpr int kWarpsPerBlock = 4;  // where a row belongs to a warp
constexpr int kMaxThreads = 512;
constexpr int kAnyThreads = 256;  // where a row is not kept in registers

template <class T>
struct ForwardOperands {
  Rows<T> x;
  const T* weight;
  const T* bias;
  float* mean;
  float* rstd;
  float epsilon;
  int64_t rows;
  int64_t cols;
};

// What becomes of the output: rows as they are.
template <class T>
struct PlainOutput {
  Rows<T> y;

  struct Writer {
    const PlainOutput& to;
    template <int kWidth>
    __device__ void write(int64_t row, int64_t col, const float (&values)[kWidth]) {
      store_once(to.y.at(row, col), Vector<T, kWidth>::from(values));
    }
    __device__ void finish() {}
  };
};

// kVectors: what a thread keeps of its row in registers; 0: the row is read anew in every pass, whatever its length.
template <class T, int kWidth, int kVectors, bool kWarpRow>
struct RowReader {
  const T* x;
  int thread, threads;
  int64_t vectors;
  Vector<T, kWidth> kept[kVectors == 0 ? 1 : kVectors];

  __device__ RowReader(const T* row, int64_t cols)
      : x(row),
        thread(static_cast<int>(kWarpRow ? threadIdx.x % kWarp : threadIdx.x)),
        threads(static_cast<int>(kWarpRow ? kWarp : blockDim.x)),
        vectors(cols / kWidth) {
    if constexpr (kVectors > 0) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const int vector = thread + i * threads;
        if (vector < vectors) kept[i] = load_once<kWidth>(x + int64_t{vector} * kWidth);
      }
    }
  }

  // body(vector of x, its first column), for all vectors of this thread
  template <class Body>
  __device__ void each(const Body& body) const {
    if constexpr (kVectors > 0) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const int vector = thread + i * threads;
        if (vector < vectors) body(kept[i], int64_t{vector} * kWidth);
      }
    } else {
      for (int64_t vector = thread; vector < vectors; vector += threads) {
        body(load<kWidth>(x + vector * kWidth), vector * kWidth);
      }
    }
  }
};

template <bool kWarpRow>
__device__ float row_sum(float value, float (*shared)[kWarp]) {
  if constexpr (kWarpRow) {
    return warp_sum(value);
  } else {
    float values[1] = {value};
    block_sums(values, shared);
    return values[0];
  }
}

// xhat = x * rstd + offset, offset = -mean * rstd: an instruction less than with (x - mean), and as exact as the
// rounded mean is. The same bits wherever it is computed.
template <class T, int kWidth>
__device__ void normalize(const Vector<T, kWidth>& x, float rstd, float offset, const T* weights, const T* biases,
                          int64_t col, float (&values)[kWidth]) {
  const Vector<T, kWidth> weight = load<kWidth>(weights + col);
  const Vector<T, kWidth> bias = biases != nullptr ? load<kWidth>(biases + col) : Vector<T, kWidth>::filled(0.0f);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = __fmaf_rn(__fmaf_rn(x[i], rstd, offset), weight[i], bias[i]);
}

// LayerNorm where kCentered. The variance is summed around the mean: it survives a mean far larger than itself.
template <class T, class Output, int kWidth, int kVectors, bool kWarpRow, bool kCentered>
__global__ void __launch_bounds__(kWarpRow ? kWarpsPerBlock* kWarp : kMaxThreads)
    norm_forward_kernel(ForwardOperands<T> args, Output output) {
  const int64_t row = kWarpRow ? int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / kWarp : blockIdx.x;
  if (kWarpRow && row >= args.rows) return;
  const RowReader<T, kWidth, kVectors, kWarpRow> reader(args.x.at(row, 0), args.cols);
  __shared__ float shared[2][kWarp];
  const auto count = static_cast<float>(args.cols);

  float mean = 0.0f;
  if constexpr (kCentered) {
    float sum = 0.0f;
    reader.each([&](const Vector<T, kWidth>& x, int64_t) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum += x[i];
    });
    mean = __fdiv_rn(row_sum<kWarpRow>(sum, &shared[0]), count);
  }
  float squares = 0.0f;
  reader.each([&](const Vector<T, kWidth>& x, int64_t) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += (x[i] - mean) * (x[i] - mean);
  });
  const float rstd = rsqrtf(__fdiv_rn(row_sum<kWarpRow>(squares, &shared[1]), count) + args.epsilon);
  if (reader.thread == 0) {
    if constexpr (kCentered) args.mean[row] = mean;
    args.rstd[row] = rstd;
  }

  const float offset = -mean * rstd;
  typename Output::Writer writer{output};
  reader.each([&](const Vector<T, kWidth>& x, int64_t col) {
    float values[kWidth];
    normalize(x, rstd, offset, args.weight, args.bias, col, values);
    writer.write(row, col, values);
  });
  writer.finish();
}

template <class T, class Output, int kWidth, int kVectors, bool kWarpRow, bool kCentered>
void launch_forward(const ForwardOperands<T>& args, const Output& output, int threads, void* stream) {
  const int64_t blocks = kWarpRow ? divide_up(args.rows, kWarpsPerBlock) : args.rows;
  norm_forward_kernel<T, Output, kWidth, kVectors, kWarpRow, kCentered>
      <<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, static_cast<cudaStream_t>(stream)>>>(args,
                                                                                                                output);
}

// Of a block where each thread keeps so many vectors of its row. Few threads with many vectors each have fewer sums to
// wait for: under a training step's power the clock is a third lower than in a bench, and then that is what counts.
int block_threads(int64_t vectors, int64_t kept) {
  return static_cast<int>(divide_up(vectors, kept * kWarp)) * kWarp;
}

template <bool kCentered, class T, class Output>
void launch_forward(const ForwardOperands<T>& args, const Output& output, bool aligned, void* stream) {
  constexpr int kWidth = kFullWidth<T>;
  constexpr int kWarpThreads = kWarpsPerBlock * kWarp;
  const int64_t vectors = args.cols / kWidth;
  if (!aligned) {
    launch_forward<T, Output, 1, 0, false, kCentered>(args, output, kAnyThreads, stream);
  } else if (vectors <= 2 * kWarp) {
    launch_forward<T, Output, kWidth, 2, true, kCentered>(args, output, kWarpThreads, stream);
  } else if (vectors <= 4 * kWarp) {
    launch_forward<T, Output, kWidth, 4, true, kCentered>(args, output, kWarpThreads, stream);
  } else if (vectors <= 2 * kMaxThreads) {
    launch_forward<T, Output, kWidth, 4, false, kCentered>(args, output, block_threads(vectors, 4), stream);
  } else if (vectors <= 6 * kMaxThreads) {
    launch_forward<T, Output, kWidth, 6, false, kCentered>(args, output, block_threads(vectors, 6), stream);
  } else {
    launch_forward<T, Output, kWidth, 0, false, kCentered>(args, output, kAnyThreads, stream);
  }
}

// `output_aligned`: rows of the output, too, can be written in vectors as long as those that are read.
template <class T, class Output>
void launch_norm_forward_to(const NormForwardLaunch& args, const Output& output, bool output_aligned, void* stream) {
  const auto [rows, cols, element] = args.extent;
  const ForwardOperands<T> operands{Rows<T>(args.x),
                                    static_cast<const T*>(args.weight),
                                    static_cast<const T*>(args.bias),
                                    args.mean,
                                    args.rstd,
                                    args.epsilon,
                                    rows,
                                    cols};
  const bool aligned = output_aligned && cols % kFullWidth<T> == 0 && rows_aligned(args.x, rows, sizeof(T)) &&
                       address_aligned(args.weight) && address_aligned(args.bias);
  if (args.mean != nullptr) {
    launch_forward<true>(operands, output, aligned, stream);
  } else {
    launch_forward<false>(operands, output, aligned, stream);
  }
}

}  // namespace

}  // namespace megalith::ops::cuda
