#include "ops/dropout.h"

#include "ops/cpu/check.h"
#include "ops/cpu/math.h"
#include "ops/cpu/random.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

template <class T>
void add_span(const T* x, const T* residual, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    y[i] = round_to<T>(static_cast<Main<T>>(x[i]) + static_cast<Main<T>>(residual[i]));
  }
}

template <class T>
void dropout_span(const T* x, const T* residual, const Main<T>* factors, T* y, int64_t count) {
  using M = Main<T>;
  if (residual == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[i] = round_to<T>(static_cast<M>(x[i]) * factors[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      y[i] = round_to<T>(static_cast<M>(x[i]) * factors[i] + static_cast<M>(residual[i]));
    }
  }
}

template <class T>
void without_dropout(Stream& stream, const DropoutAdd& args) {
  run_spans(
      stream,
      [&](int64_t row, int64_t begin, int64_t end) {
        const T* x = args.x.row<T>(row);
        T* y = args.y.row<T>(row);
        if (args.residual) {
          add_span(x + begin, args.residual.row<T>(row) + begin, y + begin, end - begin);
        } else if (x != y) {
          std::copy(x + begin, x + end, y + begin);
        }
      },
      args.x, args.y, args.residual);
}

// What row `row` of x draws from.
struct RowDraw {
  uint64_t key;
  int64_t position;

  RowDraw(const Dropout& dropout, int64_t row) {
    const int64_t whole_row = dropout.first_row + row;
    const int64_t sample = whole_row / dropout.length;
    const int64_t first = dropout.first_positions ? dropout.first_positions.as<int32_t>()[sample] : 0;
    key = key_of_sample(dropout, sample);
    position = first + whole_row % dropout.length;
  }
};

void check_rows(const Dropout& dropout, int64_t rows) {
  const int64_t samples = dropout.sample_ids.elements();
  check_dropout(dropout, samples);
  if (dropout.probability == 0.0) return;
  MEGALITH_CHECK(dropout.length > 0 && dropout.first_row >= 0 && dropout.first_row + rows <= samples * dropout.length,
                 "dropout of {} rows from {} on, of {} samples of length {}", rows, dropout.first_row, samples,
                 dropout.length);
  if (dropout.first_positions) check_vector(dropout.first_positions, "first_positions", DType::i32, samples);
}

template <class T>
void with_dropout(Stream& stream, const DropoutAdd& args) {
  using M = Main<T>;
  const Dropout& dropout = args.dropout;
  const uint32_t threshold = dropout_threshold(dropout.probability);
  const auto scale = static_cast<M>(1.0 / (1.0 - dropout.probability));
  const int64_t cols = args.x.cols();
  run_pieces(stream, args.x.rows(), tile_rows(cols), [&](int64_t first, int64_t last) {
    std::array<M, kMaxDraw> factors;
    for (int64_t row = first; row < last; ++row) {
      const RowDraw draw(dropout, row);
      const T* x = args.x.row<T>(row);
      const T* residual = args.residual ? args.residual.row<T>(row) : nullptr;
      T* y = args.y.row<T>(row);
      for (int64_t begin = 0; begin < cols; begin += kMaxDraw) {
        const int64_t count = std::min(kMaxDraw, cols - begin);
        keep_factors(draw.key, draw.position, begin, count, threshold, scale, factors.data());
        dropout_span(x + begin, residual == nullptr ? nullptr : residual + begin, factors.data(), y + begin, count);
      }
    }
  });
}

}  // namespace

void dropout_add(Stream& stream, const DropoutAdd& args) {
  check_matrix(args.y, "y", args.x.dtype, args.x.rows(), args.x.cols());
  if (args.residual) check_matrix(args.residual, "residual", args.x.dtype, args.x.rows(), args.x.cols());
  check_rows(args.dropout, args.x.rows());
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    args.dropout.probability == 0.0 ? without_dropout<T>(stream, args) : with_dropout<T>(stream, args);
  });
}

}  // namespace megalith::ops::cpu
