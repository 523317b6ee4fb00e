#include "ops/norm.h"

#include "ops/cpu/fp8.h"
#include "ops/cpu/math.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

template <class T>
Main<T> row_mean(const T* x, int64_t count) {
  using M = Main<T>;
  M sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += static_cast<M>(x[i]);
  return sum / static_cast<M>(count);
}

template <class T>
Main<T> mean_square_around(const T* x, int64_t count, Main<T> center) {
  using M = Main<T>;
  M sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const M distance = static_cast<M>(x[i]) - center;
    sum += distance * distance;
  }
  return sum / static_cast<M>(count);
}

// Y: T itself, or what T is computed in where the result goes on to fp8.
template <class T, class Y>
void normalize_row(const T* x, Main<T> mean, Main<T> rstd, const T* weight, const T* bias, Y* y, int64_t count) {
  using M = Main<T>;
  if (bias == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      y[i] = round_to<Y>((static_cast<M>(x[i]) - mean) * rstd * static_cast<M>(weight[i]));
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      y[i] = round_to<Y>((static_cast<M>(x[i]) - mean) * rstd * static_cast<M>(weight[i]) + static_cast<M>(bias[i]));
    }
  }
}

// What the gradient of a row needs: the means of g = dy * weight and of g * xhat.
template <class M>
struct GradientMeans {
  M plain;
  M along;
};

// Also adds the row's part of dweight, and of dbias unless it is null.
template <class T>
GradientMeans<Main<T>> reduce_row(const T* dy, const T* x, const T* weight, Main<T> mean, Main<T> rstd,
                                  Main<T>* dweight, Main<T>* dbias, int64_t count) {
  using M = Main<T>;
  M plain = 0;
  M along = 0;
#pragma omp simd reduction(+ : plain, along)
  for (int64_t i = 0; i < count; ++i) {
    const auto d = static_cast<M>(dy[i]);
    const M xhat = (static_cast<M>(x[i]) - mean) * rstd;
    const M g = d * static_cast<M>(weight[i]);
    plain += g;
    along += g * xhat;
    dweight[i] += d * xhat;
  }
  if (dbias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) dbias[i] += static_cast<M>(dy[i]);
  }
  return {plain / static_cast<M>(count), along / static_cast<M>(count)};
}

template <class T>
void input_gradient_row(const T* dy, const T* x, const T* weight, const T* residual, Main<T> mean, Main<T> rstd,
                        GradientMeans<Main<T>> means, T* dx, Main<T>* dx_sums, int64_t count) {
  using M = Main<T>;
  const auto gradient = [=](int64_t i) {
    const M xhat = (static_cast<M>(x[i]) - mean) * rstd;
    return rstd * (static_cast<M>(dy[i]) * static_cast<M>(weight[i]) - means.plain - xhat * means.along);
  };
  if (residual == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) dx[i] = round_to<T>(gradient(i));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) dx[i] = round_to<T>(gradient(i) + static_cast<M>(residual[i]));
  }
  if (dx_sums != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) dx_sums[i] += static_cast<M>(dx[i]);
  }
}

// Sums over rows, one per channel; null where not asked for.
template <class M>
struct ColumnSums {
  M* dweight;
  M* dbias;
  M* dx;
};

// One tile of kNormTile rows: dx of its rows, and its partial sums.
template <class T>
void backward_tile(const NormBackward& args, int64_t begin, int64_t end, const ColumnSums<Main<T>>& sums) {
  using M = Main<T>;
  const int64_t cols = args.x.cols();
  const T* weight = args.weight.as<T>();
  for (M* sum : {sums.dweight, sums.dbias, sums.dx}) {
    if (sum != nullptr) std::fill(sum, sum + cols, M(0));
  }
  for (int64_t row = begin; row < end; ++row) {
    const M mean = args.kind == NormKind::layer_norm ? args.mean.as<M>()[row] : M(0);
    const M rstd = args.rstd.as<M>()[row];
    const T* dy = args.dy.row<T>(row);
    const T* x = args.x.row<T>(row);
    GradientMeans<M> means = reduce_row(dy, x, weight, mean, rstd, sums.dweight, sums.dbias, cols);
    if (args.kind == NormKind::rms_norm) means.plain = M(0);
    const T* residual = args.residual_gradient ? args.residual_gradient.row<T>(row) : nullptr;
    input_gradient_row(dy, x, weight, residual, mean, rstd, means, args.dx.row<T>(row), sums.dx, cols);
  }
}

}  // namespace

void norm_forward(Stream& stream, const NormForward& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  const bool centered = args.kind == NormKind::layer_norm;
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    const T* bias = args.bias ? args.bias.as<T>() : nullptr;
    const auto row_of_y = [&](int64_t row, auto* y) {
      const T* x = args.x.row<T>(row);
      const M mean = centered ? row_mean(x, cols) : M(0);
      const M rstd = M(1) / std::sqrt(mean_square_around(x, cols, mean) + static_cast<M>(args.epsilon));
      if (centered) args.mean.as<M>()[row] = mean;
      args.rstd.as<M>()[row] = rstd;
      normalize_row(x, mean, rstd, args.weight.as<T>(), bias, y, cols);
    };
    if (args.y.slot) return write_fp8<T>(stream, args.y, rows, cols, row_of_y);
    run_pieces(stream, rows, tile_rows(cols), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) row_of_y(row, args.y.rows.row<T>(row));
    });
  });
}

void norm_backward(Stream& stream, const NormBackward& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  const int64_t tiles = ceil_div(rows, kNormTile);
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    M* dweights = args.scratch.as<M>();
    M* dbiases = dweights + tiles * cols;
    M* dx_sums = dbiases + tiles * cols;
    run_tiles(stream, tiles, [&](int64_t tile) {
      backward_tile<T>(args, tile * kNormTile, std::min(rows, (tile + 1) * kNormTile),
                       {.dweight = dweights + tile * cols,
                        .dbias = args.dbias ? dbiases + tile * cols : nullptr,
                        .dx = args.dx_sums ? dx_sums + tile * cols : nullptr});
    });
    run_pieces(stream, cols, int64_t{256}, [&](int64_t begin, int64_t end) {
      add_partials(dweights, tiles, cols, begin, end, args.dweight.as<M>());
      if (args.dbias) add_partials(dbiases, tiles, cols, begin, end, args.dbias.as<M>());
      if (args.dx_sums) add_partials(dx_sums, tiles, cols, begin, end, args.dx_sums.as<M>());
    });
  });
}

}  // namespace megalith::ops::cpu
