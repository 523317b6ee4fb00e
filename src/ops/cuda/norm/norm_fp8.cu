#include "ops/cuda/fp8_tiles.cuh"
#include "ops/cuda/norm/norm_forward.cuh"
#include "ops/cuda/quantize_launch.h"

namespace megalith::ops::cuda {

namespace {

// Rows in fp8, or where there are none only the amax.
template <class F>
struct Fp8Output {
  Rows<uint8_t> y;
  const float* scale;
  uint32_t* amax;

  struct Writer {
    const Fp8Output& to;
    float scale;
    Amax seen;

    __device__ explicit Writer(const Fp8Output& output) : to(output), scale(*output.scale) {}
    template <int kWidth>
    __device__ void write(int64_t row, int64_t col, const float (&values)[kWidth]) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) seen.see(values[i]);
      if (to.y.data != nullptr) store(to.y.at(row, col), cast_to_fp8<F>(values, scale));
    }
    __device__ void finish() {
      seen.raise(to.amax);
    }
  };
};

// The output once more, from the statistics of its rows.
template <class T>
struct NormalizeOperation {
  static constexpr int kParts = 1;
  template <int kWidth>
  using Loaded = Vector<T, kWidth>;
  Rows<T> x;
  const T* weight;
  const T* bias;
  const float* mean;
  const float* rstd;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return load_once<kWidth>(x.at(row, col));
  }
  template <int kWidth>
  __device__ void compute(const Loaded<kWidth>& in, int64_t row, int64_t col, float (&values)[kParts][kWidth]) const {
    const float rstd_of_row = rstd[row];
    const float mean_of_row = mean != nullptr ? mean[row] : 0.0f;
    normalize(in, rstd_of_row, -mean_of_row * rstd_of_row, weight, bias, col, values[0]);
  }
};

}  // namespace

void launch_norm_forward(const NormForwardLaunch& args, const Fp8Operand& y, void* stream) {
  const auto [rows, cols, element] = args.extent;
  if (rows == 0 || cols == 0) return;
  dispatch(element, [&](auto zero) {
    using T = decltype(zero);
    dispatch(y.format, [&](auto format) {
      const Fp8Output<decltype(format)> output{Rows<uint8_t>(y.rows), y.scale, y.amax};
      launch_norm_forward_to<T>(args, output, rows_aligned(y.rows, args.extent.rows, 1, kFullWidth<T>), stream);
    });
    if (y.columns.data == nullptr || y.rows.data != nullptr) return;
    const NormalizeOperation<T> again{Rows<T>(args.x), static_cast<const T*>(args.weight),
                                      static_cast<const T*>(args.bias), args.mean, args.rstd};
    const bool aligned =
        rows_aligned(args.x, args.extent.rows, sizeof(T)) && address_aligned(args.weight) && address_aligned(args.bias);
    Fp8Operand columns = y;
    columns.amax = nullptr;
    launch_fp8_cast(again, aligned, args.extent, columns, {}, stream);
  });
  // A read of bytes is less than another one of x.
  if (y.columns.data != nullptr && y.rows.data != nullptr) launch_transpose(rows, cols, y.rows, y.columns, stream);
}

}  // namespace megalith::ops::cuda
