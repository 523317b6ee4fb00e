#include "ops/cuda/activation/activation.cuh"
#include "ops/cuda/activation/activation_launch.h"
#include "ops/cuda/fp8_tiles.cuh"

namespace megalith::ops::cuda {

void launch_gelu_forward(const Extent& extent, const Matrix& x, const Fp8Operand& y, void* stream) {
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    launch_fp8_cast(GeluForwardOperation<T>{Rows<T>(x), {}}, wide<T>(extent, x, {}), extent, y, {}, stream);
  });
}

void launch_gelu_backward(const GeluBackwardLaunch& args, const Fp8Operand& dx, void* stream) {
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    constexpr bool kMaySum = true;
    launch_fp8_cast<kMaySum>(GeluBackwardOperation<T>{Rows<T>(args.dy), Rows<T>(args.x), {}},
                             wide<T>(args.extent, args.dy, args.x), args.extent, dx, {args.dbias, args.partials},
                             stream);
  });
}

void launch_swiglu_forward(const Extent& extent, const Matrix& gate_up, const Fp8Operand& y, void* stream) {
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    launch_fp8_cast(SwigluForwardOperation<T>{Rows<T>(gate_up), {}, extent.cols}, wide<T>(extent, gate_up, {}), extent,
                    y, {}, stream);
  });
}

void launch_swiglu_backward(const Extent& extent, const Matrix& dy, const Matrix& gate_up, const Fp8Operand& dgate_up,
                            void* stream) {
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    launch_fp8_cast(SwigluBackwardOperation<T>{Rows<T>(dy), Rows<T>(gate_up), {}, extent.cols},
                    wide<T>(extent, dy, gate_up), extent, dgate_up, {}, stream);
  });
}

}  // namespace megalith::ops::cuda
