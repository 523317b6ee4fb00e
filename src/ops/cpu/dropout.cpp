#include "ops/dropout.h"

#include "ops/cpu/math.h"
#include "ops/cpu/random.h"
#include "ops/cpu/tiles.h"
#include "ops/elementwise.h"

namespace megalith::ops::cpu {

namespace {

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
void copy_rows(Stream& stream, const Tensor& from, const Tensor& to) {
  run_spans(
      stream,
      [&](int64_t row, int64_t begin, int64_t end) {
        const T* source = from.row<T>(row);
        std::copy(source + begin, source + end, to.row<T>(row) + begin);
      },
      from, to);
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
  const bool drops = args.dropout.probability > 0.0;
  if (!drops && args.residual) return cpu::add(stream, {.a = args.x, .b = args.residual, .y = args.y});
  if (!drops && args.x.data == args.y.data) return;
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    drops ? with_dropout<T>(stream, args) : copy_rows<T>(stream, args.x, args.y);
  });
}

}  // namespace megalith::ops::cpu
