#include "ops/cuda/activation/activation.cuh"

#include "ops/cuda/activation/activation_launch.h"
#include "ops/cuda/column_sums.cuh"
#include "ops/cuda/elementwise.cuh"

namespace megalith::ops::cuda {

namespace {

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
