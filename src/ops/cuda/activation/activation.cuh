#pragma once

#include "ops/cuda/vector.cuh"

// The activation functions, as kernels of both elementwise.cuh and fp8_tiles.cuh take them.

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
  static constexpr int kParts = 1;
  template <int kWidth>
  using Loaded = Vector<T, kWidth>;
  Rows<T> x, y;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return load_once<kWidth>(x.at(row, col));
  }
  template <int kWidth>
  __device__ void compute(const Loaded<kWidth>& in, int64_t, int64_t, float (&values)[kParts][kWidth]) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[0][i] = in[i] * gelu_gate(in[i]);
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kParts][kWidth];
    compute<kWidth>(in, row, col, values);
    cuda::store(y.at(row, col), Vector<T, kWidth>::from(values[0]));
  }
};

template <class T>
struct GeluBackwardOperation {
  static constexpr int kParts = 1;
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> dy, x;
  };
  Rows<T> dy, x, dx;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return {load_once<kWidth>(dy.at(row, col)), load_once<kWidth>(x.at(row, col))};
  }
  template <int kWidth>
  __device__ void compute(const Loaded<kWidth>& in, int64_t, int64_t, float (&values)[kParts][kWidth]) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[0][i] = in.dy[i] * gelu_slope(in.x[i]);
  }
  // Gives dx before rounding.
  template <int kWidth>
  __device__ Vector<float, kWidth> store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kParts][kWidth];
    compute<kWidth>(in, row, col, values);
    cuda::store(dx.at(row, col), Vector<T, kWidth>::from(values[0]));
    return Vector<float, kWidth>::from(values[0]);
  }
};

template <class T>
struct SwigluForwardOperation {
  static constexpr int kParts = 1;
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
  __device__ void compute(const Loaded<kWidth>& in, int64_t, int64_t, float (&values)[kParts][kWidth]) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[0][i] = in.gate[i] * sigmoid(in.gate[i]) * in.up[i];
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kParts][kWidth];
    compute<kWidth>(in, row, col, values);
    cuda::store(y.at(row, col), Vector<T, kWidth>::from(values[0]));
  }
};

template <class T>
struct SwigluBackwardOperation {
  static constexpr int kParts = 2;
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
  // The gradients of gate and up.
  template <int kWidth>
  __device__ void compute(const Loaded<kWidth>& in, int64_t, int64_t, float (&values)[kParts][kWidth]) const {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float gate = in.gate[i];
      const float s = sigmoid(gate);
      values[0][i] = in.dy[i] * in.up[i] * s * (1.0f + gate * (1.0f - s));
      values[1][i] = in.dy[i] * gate * s;
    }
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kParts][kWidth];
    compute<kWidth>(in, row, col, values);
    cuda::store(dgate_up.at(row, col), Vector<T, kWidth>::from(values[0]));
    cuda::store(dgate_up.at(row, width + col), Vector<T, kWidth>::from(values[1]));
  }
};

// Whether they can be read and written 16 bytes at a time.
template <class T>
bool wide(const Extent& extent, const Matrix& a, const Matrix& b, const Matrix& c = {}) {
  return extent.cols % kFullWidth<T> == 0 && rows_aligned(a, extent.rows, sizeof(T)) &&
         rows_aligned(b, extent.rows, sizeof(T)) && rows_aligned(c, extent.rows, sizeof(T));
}

}  // namespace

}  // namespace megalith::ops::cuda
