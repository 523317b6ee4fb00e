#pragma once

#include "ops/cuda/column_sums.cuh"
#include "ops/cuda/fp8.cuh"

// fp8 matrices by tiles of 128 rows and 128 columns, which a block turns over in shared memory: rows and columns of an
// operand come from one read of what it is made of.

namespace megalith::ops::cuda {

constexpr int kTileRows = 128;  // kColumnTile: a tile leaves one row of partial sums
constexpr int kTileCols = 128;
constexpr int kTileThreads = 256;
constexpr int kTileWidth = 8;  // columns of a thread
constexpr int kTileDepth = 4;  // rows that it turns at a time: the bytes of a word
constexpr int kTilePasses = kTileRows * kTileCols / (kTileThreads * kTileWidth * kTileDepth);

using Bytes = Vector<uint8_t, kTileWidth>;

// Where a thread works: in the columns of a span, and in each pass in the rows of a group.
struct TileThread {
  int span, group;

  __device__ TileThread() {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    span = warp % 2 * 8 + lane % 8;
    group = warp / 2 * 4 + lane / 8;
  }
  __device__ int col() const { return span * kTileWidth; }
  __device__ int row(int pass) const { return (group + pass * kTileRows / kTileDepth / kTilePasses) * kTileDepth; }
};

struct TileOrigin {
  int64_t row, col;

  __device__ explicit TileOrigin(uint32_t tiles_across) {
    const uint32_t down = blockIdx.x / tiles_across;
    row = int64_t{down} * kTileRows;
    col = int64_t{blockIdx.x - down * tiles_across} * kTileCols;
  }
};

// A tile by columns. Of each column, the pieces of 16 rows change places so that neither the words of keep() nor the
// pieces of store_to() meet in a bank.
class TurnedTile {
 public:
  // Four rows from `row` on of the eight columns from `col` on.
  __device__ void keep(int row, int col, const Bytes (&rows)[kTileDepth]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t first = __byte_perm(rows[0].word[half], rows[1].word[half], 0x5140);
      const uint32_t second = __byte_perm(rows[2].word[half], rows[3].word[half], 0x5140);
      const uint32_t third = __byte_perm(rows[0].word[half], rows[1].word[half], 0x7362);
      const uint32_t fourth = __byte_perm(rows[2].word[half], rows[3].word[half], 0x7362);
      word(row, col + 4 * half) = __byte_perm(first, second, 0x5410);
      word(row, col + 4 * half + 1) = __byte_perm(first, second, 0x7632);
      word(row, col + 4 * half + 2) = __byte_perm(third, fourth, 0x5410);
      word(row, col + 4 * half + 3) = __byte_perm(third, fourth, 0x7632);
    }
  }

  // The part of it that is within (rows, cols). `wide`: columns are in whole pieces.
  __device__ void store_to(const Rows<uint8_t>& columns, const TileOrigin& origin, int64_t rows, int64_t cols,
                           bool wide) const {
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kPieces * kTileCols; i += kTileThreads) {
      const int col = i / kPieces;
      const int piece = i % kPieces;
      const int64_t row = origin.row + piece * kPiece;
      if (origin.col + col >= cols || row >= rows) continue;
      const uint4 bits = pieces_[col * kPieces + moved(piece, col)];
      const Vector<uint8_t, kPiece> bytes{{bits.x, bits.y, bits.z, bits.w}};
      uint8_t* to = columns.at(origin.col + col, row);
      if (wide) {
        store(to, bytes);
      } else {
#pragma unroll
        for (int byte = 0; byte < kPiece; ++byte) {
          if (row + byte < rows) to[byte] = static_cast<uint8_t>(bytes.word[byte / 4] >> byte % 4 * 8);
        }
      }
    }
  }

 private:
  static constexpr int kPiece = 16;
  static constexpr int kPieces = kTileRows / kPiece;

  __device__ static int moved(int piece, int col) {
    return piece ^ (col / kTileWidth % kPieces);
  }
  __device__ uint32_t& word(int row, int col) {
    uint4& piece = pieces_[col * kPieces + moved(row / kPiece, col)];
    return reinterpret_cast<uint32_t*>(&piece)[row % kPiece / kTileDepth];
  }

  uint4 pieces_[kTileCols * kPieces];
};

// Sums of a thread's columns over the rows of a tile.
class TileSums {
 public:
  __device__ void add(const float (&values)[kTileWidth]) {
#pragma unroll
    for (int i = 0; i < kTileWidth; ++i) sums_[i] += values[i];
  }
  // In a fixed order: first over the lanes that share the columns, then over the warps.
  __device__ void leave(const TileThread& thread, float (*shared)[kTileCols]) {
#pragma unroll
    for (int i = 0; i < kTileWidth; ++i) {
      sums_[i] += __shfl_xor_sync(kAllLanes, sums_[i], 8);
      sums_[i] += __shfl_xor_sync(kAllLanes, sums_[i], 16);
      if (thread.group % 4 == 0) shared[thread.group / 4][thread.col() + i] = sums_[i];
    }
  }
  // After a barrier.
  __device__ static void store_to(float* partials, const TileOrigin& origin, int64_t cols,
                                  const float (*shared)[kTileCols]) {
    const int col = static_cast<int>(threadIdx.x);
    if (col >= kTileCols || origin.col + col >= cols) return;
    partials[origin.row / kTileRows * cols + origin.col + col] =
        (shared[0][col] + shared[1][col]) + (shared[2][col] + shared[3][col]);
  }

 private:
  float sums_[kTileWidth] = {};
};

// What a cast writes, but for its source: parts side by side, each of (rows, cols).
struct CastTarget {
  Rows<uint8_t> rows_of_y, columns_of_y;
  const float* scale;
  uint32_t* amax;
  float* partials;  // of column sums, a row per row of tiles
  int64_t rows;
  int64_t cols;
  uint32_t tiles_across;
  bool wide_columns;
};

// Blocks of a multiprocessor at the same time: few where registers hold much of what is read.
template <class Loaded, int kWidth>
constexpr int kTileBlocks = kWidth<kTileWidth || sizeof(Loaded)> 32 ? 2
                            : sizeof(Loaded) > 16                   ? 3
                                                                    : 4;

// The source is an operation (elementwise.cuh) with kParts, the number of values that it makes in each place, and
//   void compute<kWidth>(const Loaded<kWidth>&, int64_t row, int64_t col, float (&values)[kParts][kWidth]) const;
// kWidth: how many columns it reads at once; 1 where something is not aligned.
template <class F, int kWidth, bool kSums, class Source>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<typename Source::template Loaded<kWidth>, kWidth>)
    cast_tiles_kernel(const __grid_constant__ Source source, const __grid_constant__ CastTarget y) {
  using Loaded = typename Source::template Loaded<kWidth>;
  constexpr int kParts = Source::kParts;
  constexpr int kVectors = kTileWidth / kWidth;
  __shared__ TurnedTile turned[kParts];
  __shared__ float shared_sums[kSums ? 4 : 1][kTileCols];
  const TileOrigin origin(y.tiles_across);
  const TileThread thread;
  const int64_t col = origin.col + thread.col();
  const float scale = *y.scale;
  Amax amax;
  TileSums sums;

  // Not unrolled: with the loads of all passes ahead of the first, registers would not suffice.
#pragma unroll 1
  for (int pass = 0; pass < kTilePasses; ++pass) {
    const int64_t row = origin.row + thread.row(pass);
    const auto present = [&](int i, int v) { return row + i < y.rows && col + v * kWidth < y.cols; };
    Loaded held[kTileDepth][kVectors];
#pragma unroll
    for (int i = 0; i < kTileDepth; ++i) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (present(i, v)) held[i][v] = source.template load<kWidth>(row + i, col + v * kWidth);
      }
    }
    Bytes bytes[kParts][kTileDepth];
#pragma unroll
    for (int i = 0; i < kTileDepth; ++i) {
      float values[kParts][kTileWidth] = {};
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (!present(i, v)) continue;
        float computed[kParts][kWidth];
        source.template compute<kWidth>(held[i][v], row + i, col + v * kWidth, computed);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
#pragma unroll
          for (int c = 0; c < kWidth; ++c) values[part][v * kWidth + c] = computed[part][c];
        }
      }
      if constexpr (kSums) sums.add(values[0]);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int c = 0; c < kTileWidth; ++c) amax.see(values[part][c]);
        bytes[part][i] = cast_to_fp8<F>(values[part], scale);
        if (y.rows_of_y.data == nullptr) continue;
        uint8_t* to = y.rows_of_y.at(row + i, part * y.cols + col);
        if constexpr (kWidth == kTileWidth) {
          if (present(i, 0)) store(to, bytes[part][i]);
        } else {
#pragma unroll
          for (int c = 0; c < kTileWidth; ++c) {
            if (present(i, c)) to[c] = static_cast<uint8_t>(bytes[part][i].word[c / 4] >> c % 4 * 8);
          }
        }
      }
    }
    if (y.columns_of_y.data == nullptr) continue;
#pragma unroll
    for (int part = 0; part < kParts; ++part) turned[part].keep(thread.row(pass), thread.col(), bytes[part]);
  }
  amax.raise(y.amax);
  if constexpr (kSums) sums.leave(thread, shared_sums);
  __syncthreads();
  if constexpr (kSums) TileSums::store_to(y.partials, origin, y.cols, shared_sums);
  if (y.columns_of_y.data == nullptr) return;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    Rows<uint8_t> columns = y.columns_of_y;
    columns.data = columns.at(part * y.cols, 0);
    turned[part].store_to(columns, origin, y.rows, y.cols, y.wide_columns);
  }
}

// Column sums beside a cast; none where dbias is null.
struct CastSums {
  float* dbias = nullptr;
  float* partials = nullptr;  // a row per kTileRows rows
};

template <class Source, bool kSums>
void launch_cast_tiles(const Source& source, bool wide, const CastTarget& target, Fp8 format, void* stream) {
  const int64_t blocks = divide_up(target.rows, kTileRows) * target.tiles_across;
  dispatch(format, [&](auto type) {
    using F = decltype(type);
    const auto kernel = wide ? cast_tiles_kernel<F, kTileWidth, kSums, Source> : cast_tiles_kernel<F, 1, kSums, Source>;
    kernel<<<static_cast<unsigned>(blocks), kTileThreads, 0, static_cast<cudaStream_t>(stream)>>>(source, target);
  });
}

inline bool columns_in_pieces(const Matrix& columns, int64_t rows, int64_t cols) {
  return rows % 16 == 0 && rows_aligned(columns, cols, 1);
}

// y (rows, kParts * cols) = the cast of what `source` makes. `aligned`: it can be read kTileWidth columns at a time.
template <bool kMaySum = false, class Source>
void launch_fp8_cast(const Source& source, bool aligned, const Extent& part, const Fp8Operand& y, const CastSums& sums,
                     void* stream) {
  const auto [rows, cols, element] = part;
  if (rows == 0 || cols == 0) return;
  const bool wide = aligned && cols % kTileWidth == 0 && rows_aligned(y.rows, rows, 1, kTileWidth);
  const CastTarget target{Rows<uint8_t>(y.rows),
                          Rows<uint8_t>(y.columns),
                          y.scale,
                          y.amax,
                          sums.partials,
                          rows,
                          cols,
                          static_cast<uint32_t>(divide_up(cols, kTileCols)),
                          columns_in_pieces(y.columns, rows, Source::kParts * cols)};
  if constexpr (kMaySum) {
    if (sums.dbias != nullptr) {
      launch_cast_tiles<Source, true>(source, wide, target, y.format, stream);
      Totals totals;
      totals.add(sums.partials, sums.dbias);
      launch_add_totals(totals, divide_up(rows, kTileRows), cols, stream);
      return;
    }
  }
  launch_cast_tiles<Source, false>(source, wide, target, y.format, stream);
}

}  // namespace megalith::ops::cuda
