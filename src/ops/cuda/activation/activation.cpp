#include "ops/activation.h"

#include "ops/cuda/activation/activation_launch.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"

namespace megalith::ops::cuda {

void gelu_forward(Stream& stream, const GeluForward& args) {
  if (args.y.slot) {
    launch_gelu_forward(extent_of(args.x), matrix_of(args.x), fp8_of(args.y), stream.native());
  } else {
    launch_gelu_forward(flat_extent(args.x, args.y.rows), matrix_of(args.x), matrix_of(args.y.rows), stream.native());
  }
  check_launch("gelu_forward", args.x);
}

void gelu_backward(Stream& stream, const GeluBackward& args) {
  GeluBackwardLaunch launch{
      .extent = extent_of(args.x), .dy = matrix_of(args.dy), .x = matrix_of(args.x), .dx = matrix_of(args.dx.rows)};
  if (args.dbias) {
    launch.dbias = args.dbias.as<float>();
    launch.partials = args.scratch.as<float>();
    launch.max_partials = ceil_div(args.x.rows(), kColumnTile);
  } else if (!args.dx.slot) {
    launch.extent = flat_extent(args.x, args.dy, args.dx.rows);
  }
  if (args.dx.slot) {
    launch_gelu_backward(launch, fp8_of(args.dx), stream.native());
  } else {
    launch_gelu_backward(launch, stream.native());
  }
  check_launch("gelu_backward", args.x);
}

void swiglu_forward(Stream& stream, const SwigluForward& args) {
  const Matrix gate_up = matrix_of(args.gate_up);
  if (args.y.slot) {
    launch_swiglu_forward(extent_of(args.gate_up.slice_cols(0, args.gate_up.cols() / 2)), gate_up, fp8_of(args.y),
                          stream.native());
  } else {
    launch_swiglu_forward(extent_of(args.y.rows), gate_up, matrix_of(args.y.rows), stream.native());
  }
  check_launch("swiglu_forward", args.gate_up);
}

void swiglu_backward(Stream& stream, const SwigluBackward& args) {
  const Extent extent = extent_of(args.dy);
  const Matrix dy = matrix_of(args.dy);
  const Matrix gate_up = matrix_of(args.gate_up);
  if (args.dgate_up.slot) {
    launch_swiglu_backward(extent, dy, gate_up, fp8_of(args.dgate_up), stream.native());
  } else {
    launch_swiglu_backward(extent, dy, gate_up, matrix_of(args.dgate_up.rows), stream.native());
  }
  check_launch("swiglu_backward", args.gate_up);
}

}  // namespace megalith::ops::cuda
