#include "ops/cuda/norm/norm_launch.h"

#include "ops/cuda/norm/norm_backward.cuh"
#include "ops/cuda/norm/norm_forward.cuh"

namespace megalith::ops::cuda {

void launch_norm_forward(const NormForwardLaunch& args, const Matrix& y, void* stream) {
  if (args.extent.rows == 0 || args.extent.cols == 0) return;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    launch_norm_forward_to<T>(args, PlainOutput<T>{Rows<T>(y)}, rows_aligned(y, args.extent.rows, sizeof(T)), stream);
  });
}

void launch_norm_backward(const NormBackwardLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t cols = args.extent.cols;
  if (rows == 0 || cols == 0) return;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    if (args.mean != nullptr) {
      launch_backward<T, true>(args, stream);
    } else {
      launch_backward<T, false>(args, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
