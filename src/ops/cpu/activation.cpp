#include "ops/activation.h"

#include "ops/cpu/fp8.h"
#include "ops/cpu/math.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

constexpr double kSqrtTwoOverPi = 0.7978845608028654;
constexpr double kCubic = 0.044715;

// 0.5 (1 + tanh(u)) = sigmoid(2u): one exp, and no cancellation where tanh is near -1.
template <class M>
M gelu_gate(M x) {
  return sigmoid(M(2 * kSqrtTwoOverPi) * (x + M(kCubic) * x * x * x));
}

template <class M>
M gelu_slope(M x) {
  const M gate = gelu_gate(x);
  return gate + x * gate * (M(1) - gate) * M(2 * kSqrtTwoOverPi) * (M(1) + M(3 * kCubic) * x * x);
}

// Y: T itself, or what T is computed in where the result goes on to fp8.
template <class T, class Y>
void gelu_forward_span(const T* x, Y* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<Main<T>>(x[i]);
    y[i] = round_to<Y>(value * gelu_gate(value));
  }
}

template <class T, class Y>
void gelu_backward_span(const T* dy, const T* x, Y* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = round_to<Y>(static_cast<Main<T>>(dy[i]) * gelu_slope(static_cast<Main<T>>(x[i])));
  }
}

template <class T, class Y>
void swiglu_forward_row(const T* gate, const T* up, Y* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto g = static_cast<Main<T>>(gate[i]);
    y[i] = round_to<Y>(g * sigmoid(g) * static_cast<Main<T>>(up[i]));
  }
}

template <class T, class Y>
void swiglu_backward_row(const T* dy, const T* gate, const T* up, Y* dgate, Y* dup, int64_t count) {
  using M = Main<T>;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto g = static_cast<M>(gate[i]);
    const auto u = static_cast<M>(up[i]);
    const auto d = static_cast<M>(dy[i]);
    const M s = sigmoid(g);
    dgate[i] = round_to<Y>(d * u * s * (M(1) + g * (M(1) - s)));
    dup[i] = round_to<Y>(d * g * s);
  }
}

}  // namespace

void gelu_forward(Stream& stream, const GeluForward& args) {
  const int64_t cols = args.x.cols();
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    if (args.y.slot) {
      return write_fp8<T>(stream, args.y, args.x.rows(), cols,
                          [&](int64_t row, auto* values) { gelu_forward_span(args.x.row<T>(row), values, cols); });
    }
    run_spans(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          gelu_forward_span(args.x.row<T>(row) + begin, args.y.rows.row<T>(row) + begin, end - begin);
        },
        args.x, args.y.rows);
  });
}

void gelu_backward(Stream& stream, const GeluBackward& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    if (args.dx.slot) {
      write_fp8<T>(
          stream, args.dx, rows, cols,
          [&](int64_t row, auto* values) { gelu_backward_span(args.dy.row<T>(row), args.x.row<T>(row), values, cols); },
          args.dbias ? args.scratch.as<Main<T>>() : nullptr);
      if (!args.dbias) return;
      run_pieces(stream, cols, tile_rows(ceil_div(rows, kColumnTile)), [&](int64_t begin, int64_t end) {
        add_partials(args.scratch.as<Main<T>>(), ceil_div(rows, kColumnTile), cols, begin, end,
                     args.dbias.as<Main<T>>());
      });
      return;
    }
    run_spans(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          gelu_backward_span(args.dy.row<T>(row) + begin, args.x.row<T>(row) + begin, args.dx.rows.row<T>(row) + begin,
                             end - begin);
        },
        args.x, args.dy, args.dx.rows);
    if (args.dbias) cpu::bias_gradient(stream, {.dy = args.dx.rows, .dbias = args.dbias, .scratch = args.scratch});
  });
}

void swiglu_forward(Stream& stream, const SwigluForward& args) {
  const int64_t rows = args.gate_up.rows();
  const int64_t width = args.gate_up.cols() / 2;
  dispatch_float(args.gate_up.dtype, [&]<class T>(std::type_identity<T>) {
    const auto row_of_y = [&](int64_t row, auto* y) {
      const T* gate = args.gate_up.row<T>(row);
      swiglu_forward_row(gate, gate + width, y, width);
    };
    if (args.y.slot) return write_fp8<T>(stream, args.y, rows, width, row_of_y);
    run_pieces(stream, rows, tile_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) row_of_y(row, args.y.rows.row<T>(row));
    });
  });
}

void swiglu_backward(Stream& stream, const SwigluBackward& args) {
  const int64_t rows = args.dy.rows();
  const int64_t width = args.dy.cols();
  dispatch_float(args.dy.dtype, [&]<class T>(std::type_identity<T>) {
    const auto row_of_gradient = [&](int64_t row, auto* dgate) {
      const T* gate = args.gate_up.row<T>(row);
      swiglu_backward_row(args.dy.row<T>(row), gate, gate + width, dgate, dgate + width, width);
    };
    if (args.dgate_up.slot) return write_fp8<T>(stream, args.dgate_up, rows, 2 * width, row_of_gradient);
    run_pieces(stream, rows, tile_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) row_of_gradient(row, args.dgate_up.rows.row<T>(row));
    });
  });
}

}  // namespace megalith::ops::cpu
