#include "ops/activation.h"

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

template <class T>
void gelu_forward_span(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<Main<T>>(x[i]);
    y[i] = round_to<T>(value * gelu_gate(value));
  }
}

template <class T>
void gelu_backward_span(const T* dy, const T* x, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = round_to<T>(static_cast<Main<T>>(dy[i]) * gelu_slope(static_cast<Main<T>>(x[i])));
  }
}

template <class T>
void swiglu_forward_row(const T* gate, const T* up, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto g = static_cast<Main<T>>(gate[i]);
    y[i] = round_to<T>(g * sigmoid(g) * static_cast<Main<T>>(up[i]));
  }
}

template <class T>
void swiglu_backward_row(const T* dy, const T* gate, const T* up, T* dgate, T* dup, int64_t count) {
  using M = Main<T>;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const auto g = static_cast<M>(gate[i]);
    const auto u = static_cast<M>(up[i]);
    const auto d = static_cast<M>(dy[i]);
    const M s = sigmoid(g);
    dgate[i] = round_to<T>(d * u * s * (M(1) + g * (M(1) - s)));
    dup[i] = round_to<T>(d * g * s);
  }
}

}  // namespace

void gelu_forward(Stream& stream, const GeluForward& args) {
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    run_spans(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          gelu_forward_span(args.x.row<T>(row) + begin, args.y.row<T>(row) + begin, end - begin);
        },
        args.x, args.y);
  });
}

void gelu_backward(Stream& stream, const GeluBackward& args) {
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    run_spans(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          gelu_backward_span(args.dy.row<T>(row) + begin, args.x.row<T>(row) + begin, args.dx.row<T>(row) + begin,
                             end - begin);
        },
        args.x, args.dy, args.dx);
  });
  if (args.dbias) cpu::bias_gradient(stream, {.dy = args.dx, .dbias = args.dbias, .scratch = args.scratch});
}

void swiglu_forward(Stream& stream, const SwigluForward& args) {
  const int64_t width = args.y.cols();
  dispatch_float(args.y.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, args.y.rows(), tile_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* gate = args.gate_up.row<T>(row);
        swiglu_forward_row(gate, gate + width, args.y.row<T>(row), width);
      }
    });
  });
}

void swiglu_backward(Stream& stream, const SwigluBackward& args) {
  const int64_t width = args.dy.cols();
  dispatch_float(args.dy.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, args.dy.rows(), tile_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* gate = args.gate_up.row<T>(row);
        T* dgate = args.dgate_up.row<T>(row);
        swiglu_backward_row(args.dy.row<T>(row), gate, gate + width, dgate, dgate + width, width);
      }
    });
  });
}

}  // namespace megalith::ops::cpu
