#include "ops/elementwise.h"

#include <array>

#include "core/rng.h"
#include "ops/cpu/math.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

template <class From, class To>
void cast_span(const From* x, To* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    y[i] = round_to<To>(static_cast<Main<To>>(static_cast<Main<From>>(x[i])));
  }
}

template <class T>
void add_span(const T* a, const T* b, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    y[i] = round_to<T>(static_cast<Main<T>>(a[i]) + static_cast<Main<T>>(b[i]));
  }
}

constexpr int64_t kBiasCols = 128;
constexpr int64_t kBiasRows = 64;

// dbias[c] += the sum of column c over all rows, for at most kBiasCols columns. Summed in blocks of rows first, which
// keeps the rounding error of long sums small.
template <class T>
void add_column_sums(const T* dy, int64_t row_stride, int64_t rows, int64_t cols, Main<T>* dbias) {
  using M = Main<T>;
  std::array<M, kBiasCols> total{};
  for (int64_t first = 0; first < rows; first += kBiasRows) {
    std::array<M, kBiasCols> block{};
    for (int64_t row = first; row < std::min(rows, first + kBiasRows); ++row) {
      const T* source = dy + row * row_stride;
#pragma omp simd
      for (int64_t c = 0; c < cols; ++c) block[c] += static_cast<M>(source[c]);
    }
#pragma omp simd
    for (int64_t c = 0; c < cols; ++c) total[c] += block[c];
  }
#pragma omp simd
  for (int64_t c = 0; c < cols; ++c) dbias[c] += total[c];
}

template <class T>
void normal_span(T* x, int64_t count, uint64_t first, const NormalInit& args) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = args.mean + args.std * normal_at(args.key, first + static_cast<uint64_t>(i));
    x[i] = round_to<T>(static_cast<Main<T>>(value));
  }
}

}  // namespace

void fill(Stream& stream, const Fill& args) {
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    const T value = round_to<T>(static_cast<Main<T>>(args.value));
    run_spans(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          std::fill(args.x.row<T>(row) + begin, args.x.row<T>(row) + end, value);
        },
        args.x);
  });
}

void cast(Stream& stream, const Cast& args) {
  dispatch_float(args.x.dtype, [&]<class From>(std::type_identity<From>) {
    dispatch_float(args.y.dtype, [&]<class To>(std::type_identity<To>) {
      run_spans(
          stream,
          [&](int64_t row, int64_t begin, int64_t end) {
            cast_span(args.x.row<From>(row) + begin, args.y.row<To>(row) + begin, end - begin);
          },
          args.x, args.y);
    });
  });
}

void add(Stream& stream, const Add& args) {
  dispatch_float(args.a.dtype, [&]<class T>(std::type_identity<T>) {
    run_spans(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          add_span(args.a.row<T>(row) + begin, args.b.row<T>(row) + begin, args.y.row<T>(row) + begin, end - begin);
        },
        args.a, args.b, args.y);
  });
}

void bias_gradient(Stream& stream, const BiasGradient& args) {
  dispatch_float(args.dy.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, args.dy.cols(), kBiasCols, [&](int64_t begin, int64_t end) {
      add_column_sums(args.dy.as<T>() + begin, args.dy.row_stride, args.dy.rows(), end - begin,
                      args.dbias.as<Main<T>>() + begin);
    });
  });
}

void normal_init(Stream& stream, const NormalInit& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  // Some dozen nanoseconds an element, unlike the other operations here: smaller tiles.
  constexpr int64_t kSpan = 1024;
  const int64_t spans = ceil_div(cols, kSpan);
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    run_tiles(stream, rows * spans, [&](int64_t tile) {
      const int64_t row = tile / spans;
      const int64_t begin = tile % spans * kSpan;
      const int64_t first = (args.row_offset + row) * args.global_cols + args.col_offset + begin;
      normal_span(args.x.row<T>(row) + begin, std::min(kSpan, cols - begin), static_cast<uint64_t>(first), args);
    });
  });
}

}  // namespace megalith::ops::cpu
