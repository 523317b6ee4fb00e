#include "ops/cuda/dropout_launch.h"
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/random.cuh"

namespace megalith::ops::cuda {

namespace {

template <class T, bool kResidual>
struct DropoutAddOperation {
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> x, residual;
  };
  Rows<T> x, residual, y;
  DropoutDraw draw;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    Loaded<kWidth> in;
    in.x = load_once<kWidth>(x.at(row, col));
    if constexpr (kResidual) in.residual = load_once<kWidth>(residual.at(row, col));
    return in;
  }

  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float factors[kWidth];
    draw_factors(row, col, factors);
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values[i] = in.x[i] * factors[i];
      if constexpr (kResidual) values[i] += in.residual[i];
    }
    cuda::store(y.at(row, col), Vector<T, kWidth>::from(values));
  }

  // col is a multiple of kWidth.
  template <int kWidth>
  __device__ void draw_factors(int64_t row, int64_t col, float (&factors)[kWidth]) const {
    const auto length = static_cast<uint32_t>(draw.length);
    const auto whole_row = static_cast<uint32_t>(draw.first_row + row);
    const uint32_t sample = whole_row / length;
    uint32_t position = whole_row - sample * length;
    if (draw.first_positions != nullptr) position += static_cast<uint32_t>(__ldg(draw.first_positions + sample));
    const auto id = static_cast<uint64_t>(__ldg(reinterpret_cast<const long long*>(draw.sample_ids) + sample));
    const uint64_t key = dropout_key(draw.site_key, __ldg(reinterpret_cast<const unsigned long long*>(draw.step)), id);
    const auto block = static_cast<uint32_t>(col / 4);
    if constexpr (kWidth == 1) {
      const RandomWords words = philox(key, block, position);
      const auto word = static_cast<uint32_t>(col) % 4;
      const uint32_t bits =
          word < 2 ? (word == 0 ? words.word[0] : words.word[1]) : (word == 2 ? words.word[2] : words.word[3]);
      factors[0] = bits >= draw.threshold ? draw.scale : 0.0f;
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; i += 4) {
        const RandomWords words = philox(key, block + static_cast<uint32_t>(i / 4), position);
#pragma unroll
        for (int w = 0; w < 4; ++w) factors[i + w] = words.word[w] >= draw.threshold ? draw.scale : 0.0f;
      }
    }
  }
};

template <class T, bool kResidual>
void launch(const DropoutAddLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t cols = args.extent.cols;
  const DropoutAddOperation<T, kResidual> operation{Rows<T>(args.x), Rows<T>(args.residual), Rows<T>(args.y),
                                                    args.draw};
  const bool wide = cols % kFullWidth<T> == 0 && rows_aligned(args.x, rows, sizeof(T)) &&
                    rows_aligned(args.residual, rows, sizeof(T)) && rows_aligned(args.y, rows, sizeof(T));
  if (wide) {
    launch_elementwise<kFullWidth<T>>(operation, rows, cols, stream);
  } else {
    launch_elementwise<1>(operation, rows, cols, stream);
  }
}

}  // namespace

void launch_dropout_add(const DropoutAddLaunch& args, void* stream) {
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    if (args.residual.data != nullptr) {
      launch<T, true>(args, stream);
    } else {
      launch<T, false>(args, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
