#include "ops/cuda/rope_launch.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/positions.cuh"

namespace megalith::ops::cuda {

namespace {

// Columns are counted over the lower halves of all heads: column c is channel c % half of head c / half.
template <class T>
struct RopeOperation {
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> low, high;
  };
  Rows<T> x;
  uint32_t half;
  RowPositions positions;
  Rows<float> cosines, sines;
  float direction;

  __device__ uint32_t head_of(int64_t col) const { return static_cast<uint32_t>(col) / half; }
  // The place of the column in a row of x.
  __device__ int64_t low_of(int64_t col) const { return col + int64_t{head_of(col)} * half; }

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    const T* low = x.at(row, low_of(col));
    return {load_once<kWidth>(low), load_once<kWidth>(low + half)};
  }

  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    const int64_t position = position_of(positions, row);
    const auto channel = static_cast<uint32_t>(col) - head_of(col) * half;
    float cosine[kWidth], sine[kWidth];
    load_angles(cosines.at(position, channel), cosine);
    load_angles(sines.at(position, channel), sine);
    float low[kWidth], high[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float s = direction * sine[i];
      low[i] = in.low[i] * cosine[i] - in.high[i] * s;
      high[i] = in.high[i] * cosine[i] + in.low[i] * s;
    }
    T* to = x.at(row, low_of(col));
    cuda::store(to, Vector<T, kWidth>::from(low));
    cuda::store(to + half, Vector<T, kWidth>::from(high));
  }

  template <int kWidth>
  __device__ static void load_angles(const float* from, float (&angles)[kWidth]) {
    const Vector<float, kWidth> vector = cuda::load<kWidth>(from);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) angles[i] = vector[i];
  }
};

}  // namespace

void launch_rope(const RopeLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t half = args.head_dim / 2;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const RopeOperation<T> operation{Rows<T>(args.x),         static_cast<uint32_t>(half),
                                     args.positions,          Rows<float>(args.cosines),
                                     Rows<float>(args.sines), args.inverse ? -1.0f : 1.0f};
    const bool wide = half % kFullWidth<T> == 0 && rows_aligned(args.x, rows, sizeof(T)) &&
                      rows_aligned(args.cosines, 2, sizeof(float)) && rows_aligned(args.sines, 2, sizeof(float));
    if (wide) {
      launch_elementwise<kFullWidth<T>>(operation, rows, args.extent.cols / 2, stream);
    } else {
      launch_elementwise<1>(operation, rows, args.extent.cols / 2, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
