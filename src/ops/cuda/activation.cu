#include "ops/cuda/activation_launch.h"
#include "ops/cuda/column_sums.cuh"
#include "ops/cuda/elementwise.cuh"

namespace megalith::ops::cuda {

namespace {

constexpr float kTwiceSqrtTwoOverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;
constexpr float kLog2E = 1.4426950408889634f;

__device__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ float sigmoid(float x) {
  return reciprocal(1.0f + exp2_of(-kLog2E * x));
}

// 0.5 (1 + tanh(u)) = sigmoid(2u): one exp, and no cancellation where tanh is near -1. The constants are folded: with
// dbias at hand, the GELU's gradient is as much bound by instructions as by memory.
__device__ float gelu_gate(float x) {
  constexpr float kLinear = -kLog2E * kTwiceSqrtTwoOverPi;
  return reciprocal(1.0f + exp2_of(x * (kLinear + kLinear * kCubic * x * x)));
}

__device__ float gelu_slope(float x) {
  const float gate = gelu_gate(x);
  const float inner = kTwiceSqrtTwoOverPi + 3.0f * kCubic * kTwiceSqrtTwoOverPi * x * x;
  return gate + x * gate * (1.0f - gate) * inner;
}

template <class T>
struct GeluForwardOperation {
  template <int kWidth>
  using Loaded = Vector<T, kWidth>;
  Rows<T> x, y;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return load_once<kWidth>(x.at(row, col));
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = in[i] * gelu_gate(in[i]);
    cuda::store(y.at(row, col), Vector<T, kWidth>::from(values));
  }
};

template <class T>
struct GeluBackwardOperation {
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> dy, x;
  };
  Rows<T> dy, x, dx;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return {load_once<kWidth>(dy.at(row, col)), load_once<kWidth>(x.at(row, col))};
  }
  // Gives dx before rounding.
  template <int kWidth>
  __device__ Vector<float, kWidth> store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = in.dy[i] * gelu_slope(in.x[i]);
    cuda::store(dx.at(row, col), Vector<T, kWidth>::from(values));
    return Vector<float, kWidth>::from(values);
  }
};

template <class T>
struct SwigluForwardOperation {
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> gate, up;
  };
  Rows<T> gate_up, y;
  int64_t width;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return {load_once<kWidth>(gate_up.at(row, col)), load_once<kWidth>(gate_up.at(row, width + col))};
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = in.gate[i] * sigmoid(in.gate[i]) * in.up[i];
    cuda::store(y.at(row, col), Vector<T, kWidth>::from(values));
  }
};

template <class T>
struct SwigluBackwardOperation {
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> dy, gate, up;
  };
  Rows<T> dy, gate_up, dgate_up;
  int64_t width;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return {load_once<kWidth>(dy.at(row, col)), load_once<kWidth>(gate_up.at(row, col)),
            load_once<kWidth>(gate_up.at(row, width + col))};
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float dgate[kWidth], dup[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float gate = in.gate[i];
      const float s = sigmoid(gate);
      dgate[i] = in.dy[i] * in.up[i] * s * (1.0f + gate * (1.0f - s));
      dup[i] = in.dy[i] * gate * s;
    }
    cuda::store(dgate_up.at(row, col), Vector<T, kWidth>::from(dgate));
    cuda::store(dgate_up.at(row, width + col), Vector<T, kWidth>::from(dup));
  }
};

template <class T>
bool wide(const Extent& extent, const Matrix& a, const Matrix& b, const Matrix& c = {}) {
  return extent.cols % kFullWidth<T> == 0 && rows_aligned(a, extent.rows, sizeof(T)) &&
         rows_aligned(b, extent.rows, sizeof(T)) && rows_aligned(c, extent.rows, sizeof(T));
}

template <class T, class Operation>
void launch(bool wide, const Operation& operation, const Extent& extent, void* stream) {
  if (wide) {
    launch_elementwise<kFullWidth<T>>(operation, extent.rows, extent.cols, stream);
  } else {
    launch_elementwise<1>(operation, extent.rows, extent.cols, stream);
  }
}

template <class T>
void launch_gelu_sums(const GeluBackwardOperation<T>& operation, const GeluBackwardLaunch& args, bool wide,
                      void* stream) {
  const auto [rows, cols, element] = args.extent;
  if (rows == 0 || cols == 0) return;
  constexpr int kUnroll = 2;
  const int64_t partials =
      wide ? launch_sum_columns<kFullWidth<T>, kUnroll>(operation, rows, cols, args.partials, args.max_partials, stream)
           : launch_sum_columns<1, kUnroll>(operation, rows, cols, args.partials, args.max_partials, stream);
  Totals totals;
  totals.add(args.partials, args.dbias);
  launch_add_totals(totals, partials, cols, stream);
}

}  // namespace

void launch_gelu_forward(const Extent& extent, const Matrix& x, const Matrix& y, void* stream) {
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    launch<T>(wide<T>(extent, x, y), GeluForwardOperation<T>{Rows<T>(x), Rows<T>(y)}, extent, stream);
  });
}

void launch_gelu_backward(const GeluBackwardLaunch& args, void* stream) {
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const GeluBackwardOperation<T> operation{Rows<T>(args.dy), Rows<T>(args.x), Rows<T>(args.dx)};
    const bool vectors = wide<T>(args.extent, args.dy, args.x, args.dx);
    if (args.dbias != nullptr) {
      launch_gelu_sums(operation, args, vectors, stream);
    } else {
      launch<T>(vectors, operation, args.extent, stream);
    }
  });
}

void launch_swiglu_forward(const Extent& extent, const Matrix& gate_up, const Matrix& y, void* stream) {
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    launch<T>(wide<T>(extent, gate_up, y), SwigluForwardOperation<T>{Rows<T>(gate_up), Rows<T>(y), extent.cols}, extent,
              stream);
  });
}

void launch_swiglu_backward(const Extent& extent, const Matrix& dy, const Matrix& gate_up, const Matrix& dgate_up,
                            void* stream) {
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    const SwigluBackwardOperation<T> operation{Rows<T>(dy), Rows<T>(gate_up), Rows<T>(dgate_up), extent.cols};
    launch<T>(wide<T>(extent, dy, gate_up, dgate_up), operation, extent, stream);
  });
}

}  // namespace megalith::ops::cuda
