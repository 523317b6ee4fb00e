#include "ops/cuda/elementwise.cuh"

#include "ops/cuda/column_sums.cuh"
#include "ops/cuda/elementwise_launch.h"
#include "ops/cuda/random.cuh"

namespace megalith::ops::cuda {

namespace {

template <int kWidth>
struct Nothing {};

template <class T>
struct FillOperation {
  template <int kWidth>
  using Loaded = Nothing<kWidth>;
  Rows<T> x;
  float value;

  template <int kWidth>
  __device__ Nothing<kWidth> load(int64_t, int64_t) const {
    return {};
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Nothing<kWidth>&) const {
    cuda::store(x.at(row, col), Vector<T, kWidth>::filled(value));
  }
};

template <class From, class To>
struct CastOperation {
  template <int kWidth>
  using Loaded = Vector<From, kWidth>;
  Rows<From> x;
  Rows<To> y;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return load_once<kWidth>(x.at(row, col));
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = in[i];
    cuda::store(y.at(row, col), Vector<To, kWidth>::from(values));
  }
};

template <class T>
struct AddOperation {
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> a, b;
  };
  Rows<T> a, b, y;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return {load_once<kWidth>(a.at(row, col)), load_once<kWidth>(b.at(row, col))};
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = in.a[i] + in.b[i];
    cuda::store(y.at(row, col), Vector<T, kWidth>::from(values));
  }
};

template <class T>
struct SumOperation {
  template <int kWidth>
  using Loaded = Vector<T, kWidth>;
  Rows<T> dy;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    return load_once<kWidth>(dy.at(row, col));
  }
  template <int kWidth>
  __device__ Vector<float, kWidth> store(int64_t, int64_t, const Loaded<kWidth>& in) const {
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] = in[i];
    return Vector<float, kWidth>::from(values);
  }
};

// normal_at() of core/rng.cpp, in the same double arithmetic.
__device__ double normal_at(uint64_t key, uint64_t index) {
  const uint64_t pair = index / 2;
  const RandomWords words = philox(key, static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32));
  const double u1 = (static_cast<double>((uint64_t{words.word[0]} << 20) | (words.word[1] >> 12)) + 0.5) * 0x1p-52;
  const double u2 = static_cast<double>((uint64_t{words.word[2]} << 20) | (words.word[3] >> 12)) * 0x1p-52;
  const double radius = sqrt(-2.0 * log(u1));
  const double angle = 6.283185307179586476925286766559 * u2;
  return radius * (index % 2 == 0 ? cos(angle) : sin(angle));
}

template <class T>
struct NormalOperation {
  template <int kWidth>
  using Loaded = Nothing<kWidth>;
  Rows<T> x;
  uint64_t key;
  double mean, std;
  uint64_t first_element;
  int64_t global_cols;

  template <int kWidth>
  __device__ Nothing<kWidth> load(int64_t, int64_t) const {
    return {};
  }
  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Nothing<kWidth>&) const {
    const uint64_t element = first_element + static_cast<uint64_t>(row * global_cols + col);
    float values[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      values[i] = static_cast<float>(mean + std * normal_at(key, element + static_cast<uint64_t>(i)));
    }
    cuda::store(x.at(row, col), Vector<T, kWidth>::from(values));
  }
};

template <class From, class To>
void launch_cast_pair(const Extent& extent, const Matrix& x, const Matrix& y, void* stream) {
  // The wider of the two moves 16 bytes at a time.
  constexpr int kWidth = 16 / static_cast<int>(sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  const CastOperation<From, To> operation{Rows<From>(x), Rows<To>(y)};
  const bool wide = extent.cols % kWidth == 0 && rows_aligned(x, extent.rows, sizeof(From), kWidth * sizeof(From)) &&
                    rows_aligned(y, extent.rows, sizeof(To), kWidth * sizeof(To));
  if (wide) {
    launch_elementwise<kWidth>(operation, extent.rows, extent.cols, stream);
  } else {
    launch_elementwise<1>(operation, extent.rows, extent.cols, stream);
  }
}

}  // namespace

void launch_fill(const Extent& extent, const Matrix& x, float value, void* stream) {
  const auto [rows, cols, element] = extent;
  if (value == 0.0f && rows == 1) {
    cudaMemsetAsync(x.data, 0, static_cast<size_t>(cols * size_of(element)), static_cast<cudaStream_t>(stream));
    return;
  }
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    const FillOperation<T> operation{Rows<T>(x), value};
    if (extent.cols % kFullWidth<T> == 0 && rows_aligned(x, extent.rows, sizeof(T))) {
      launch_elementwise<kFullWidth<T>>(operation, extent.rows, extent.cols, stream);
    } else {
      launch_elementwise<1>(operation, extent.rows, extent.cols, stream);
    }
  });
}

void launch_cast(const Extent& extent, const Matrix& x, const Matrix& y, Element y_element, void* stream) {
  dispatch(extent.element, [&](auto from) {
    dispatch(y_element, [&](auto to) { launch_cast_pair<decltype(from), decltype(to)>(extent, x, y, stream); });
  });
}

void launch_add(const Extent& extent, const Matrix& a, const Matrix& b, const Matrix& y, void* stream) {
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    const AddOperation<T> operation{Rows<T>(a), Rows<T>(b), Rows<T>(y)};
    const bool wide = extent.cols % kFullWidth<T> == 0 && rows_aligned(a, extent.rows, sizeof(T)) &&
                      rows_aligned(b, extent.rows, sizeof(T)) && rows_aligned(y, extent.rows, sizeof(T));
    if (wide) {
      launch_elementwise<kFullWidth<T>>(operation, extent.rows, extent.cols, stream);
    } else {
      launch_elementwise<1>(operation, extent.rows, extent.cols, stream);
    }
  });
}

void launch_bias_gradient(const BiasGradientLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t cols = args.extent.cols;
  if (rows == 0 || cols == 0) return;
  int64_t partials = 0;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kUnroll = 8;
    const SumOperation<T> operation{Rows<T>(args.dy)};
    const bool wide = cols % kFullWidth<T> == 0 && rows_aligned(args.dy, rows, sizeof(T));
    partials = wide ? launch_sum_columns<kFullWidth<T>, kUnroll>(operation, rows, cols, args.partials,
                                                                 args.max_partials, stream)
                    : launch_sum_columns<1, kUnroll>(operation, rows, cols, args.partials, args.max_partials, stream);
  });
  Totals totals;
  totals.add(args.partials, args.dbias);
  launch_add_totals(totals, partials, cols, stream);
}

void launch_normal_init(const NormalInitLaunch& args, void* stream) {
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const NormalOperation<T> operation{Rows<T>(args.x), args.key,           args.mean,
                                       args.std,        args.first_element, args.global_cols};
    launch_elementwise<1>(operation, args.extent.rows, args.extent.cols, stream);
  });
}

}  // namespace megalith::ops::cuda
