#pragma once

#include <algorithm>
#include <functional>

#include "core/stream.h"
#include "core/tensor.h"

// How an operation's work is cut. Every cut depends on shapes alone, never on the number of threads, so that results do
// not.

namespace megalith::ops::cpu {

// Elements in a tile of an elementwise operation: some microseconds of work, far above the cost of handing a tile out.
constexpr int64_t kTileElements = 1 << 14;

// Rows in a tile of an operation that works row by row.
constexpr int64_t tile_rows(int64_t cols) {
  return std::max<int64_t>(1, kTileElements / std::max<int64_t>(1, cols));
}

// Passed by reference: a std::function made of the body itself would allocate.
template <class Body>
void run_tiles(Stream& stream, int64_t tiles, const Body& body) {
  stream.pool().run(tiles, std::ref(body));
}

// body(begin, end) over pieces of [0, count).
template <class Body>
void run_pieces(Stream& stream, int64_t count, int64_t grain, const Body& body) {
  run_tiles(stream, ceil_div(count, grain), [&](int64_t i) { body(i * grain, std::min(count, (i + 1) * grain)); });
}

// body(row, begin, end) for spans of columns that together cover the tensors, all of the shape of the first. Where all
// are contiguous they count as one long row. Absent tensors are contiguous.
template <class Body, class... Tensors>
void run_spans(Stream& stream, const Body& body, const Tensor& first, const Tensors&... others) {
  const bool flat = first.contiguous() && (others.contiguous() && ...);
  const int64_t rows = flat ? 1 : first.rows();
  const int64_t cols = flat ? first.elements() : first.cols();
  if (cols >= kTileElements) {
    const int64_t spans = ceil_div(cols, kTileElements);
    run_tiles(stream, rows * spans, [&](int64_t i) {
      const int64_t begin = i % spans * kTileElements;
      body(i / spans, begin, std::min(cols, begin + kTileElements));
    });
  } else {
    run_pieces(stream, rows, tile_rows(cols), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row, int64_t{0}, cols);
    });
  }
}

// total[c] += the partials of all tiles, in the order of the tiles.
template <class M>
void add_partials(const M* partials, int64_t tiles, int64_t cols, int64_t begin, int64_t end, M* total) {
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const M* partial = partials + tile * cols;
#pragma omp simd
    for (int64_t c = begin; c < end; ++c) total[c] += partial[c];
  }
}

}  // namespace megalith::ops::cpu
