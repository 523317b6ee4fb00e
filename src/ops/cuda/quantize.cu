#include "ops/cuda/quantize_launch.h"

#include "ops/cuda/fp8_tiles.cuh"

namespace megalith::ops::cuda {

namespace {

template <class T>
struct QuantizeOperation {
  static constexpr int kParts = 1;
  template <int kWidth>
  using Loaded = Vector<T, kWidth>;
  Rows<T> x;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return load_once<kWidth>(x.at(row, col));
  }
  template <int kWidth>
  __device__ void compute(const Loaded<kWidth>& in, int64_t, int64_t, float (&values)[kParts][kWidth]) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[0][i] = in[i];
  }
};

struct TransposeOperands {
  Rows<uint8_t> from, to;
  int64_t rows, cols;
  uint32_t tiles_across;
  bool wide_from, wide_to;
};

__global__ void __launch_bounds__(kTileThreads) transpose_kernel(const __grid_constant__ TransposeOperands args) {
  __shared__ TurnedTile turned;
  const TileOrigin origin(args.tiles_across);
  const TileThread thread;
  const int64_t col = origin.col + thread.col();
  Bytes bytes[kTilePasses][kTileDepth] = {};
#pragma unroll
  for (int pass = 0; pass < kTilePasses; ++pass) {
#pragma unroll
    for (int i = 0; i < kTileDepth; ++i) {
      const int64_t row = origin.row + thread.row(pass) + i;
      if (row >= args.rows || col >= args.cols) continue;
      const uint8_t* from = args.from.at(row, col);
      if (args.wide_from) {
        bytes[pass][i] = load_once<kTileWidth>(from);
      } else {
#pragma unroll
        for (int c = 0; c < kTileWidth; ++c) {
          if (col + c < args.cols) bytes[pass][i].word[c / 4] |= uint32_t{from[c]} << c % 4 * 8;
        }
      }
    }
  }
#pragma unroll
  for (int pass = 0; pass < kTilePasses; ++pass) turned.keep(thread.row(pass), thread.col(), bytes[pass]);
  __syncthreads();
  turned.store_to(args.to, origin, args.rows, args.cols, args.wide_to);
}

}  // namespace

void launch_quantize(const QuantizeLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    constexpr bool kMaySum = true;
    launch_fp8_cast<kMaySum>(QuantizeOperation<T>{Rows<T>(args.x)}, rows_aligned(args.x, rows, sizeof(T)), args.extent,
                             args.y, {args.dbias, args.partials}, stream);
  });
}

void launch_transpose(int64_t rows, int64_t cols, const Matrix& from, const Matrix& to, void* stream) {
  if (rows == 0 || cols == 0) return;
  const TransposeOperands operands{Rows<uint8_t>(from),
                                   Rows<uint8_t>(to),
                                   rows,
                                   cols,
                                   static_cast<uint32_t>(divide_up(cols, kTileCols)),
                                   cols % kTileWidth == 0 && rows_aligned(from, rows, 1, kTileWidth),
                                   columns_in_pieces(to, rows, cols)};
  const int64_t blocks = divide_up(rows, kTileRows) * operands.tiles_across;
  transpose_kernel<<<static_cast<unsigned>(blocks), kTileThreads, 0, static_cast<cudaStream_t>(stream)>>>(operands);
}

}  // namespace megalith::ops::cuda
