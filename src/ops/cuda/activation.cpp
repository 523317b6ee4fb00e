#include "ops/activation.h"

#include "ops/cuda/activation_launch.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"

namespace megalith::ops::cuda {

void gelu_forward(Stream& stream, const GeluForward& args) {
  launch_gelu_forward(flat_extent(args.x, args.y), matrix_of(args.x), matrix_of(args.y), stream.native());
  check_launch("gelu_forward", args.x);
}

void gelu_backward(Stream& stream, const GeluBackward& args) {
  GeluBackwardLaunch launch{.extent = flat_extent(args.x, args.dy, args.dx),
                            .dy = matrix_of(args.dy),
                            .x = matrix_of(args.x),
                            .dx = matrix_of(args.dx)};
  if (args.dbias) {
    launch.extent = extent_of(args.x);
    launch.dbias = args.dbias.as<float>();
    launch.partials = args.scratch.as<float>();
    launch.max_partials = ceil_div(args.x.rows(), kColumnTile);
  }
  launch_gelu_backward(launch, stream.native());
  check_launch("gelu_backward", args.x);
}

void swiglu_forward(Stream& stream, const SwigluForward& args) {
  launch_swiglu_forward(extent_of(args.y), matrix_of(args.gate_up), matrix_of(args.y), stream.native());
  check_launch("swiglu_forward", args.gate_up);
}

void swiglu_backward(Stream& stream, const SwigluBackward& args) {
  launch_swiglu_backward(extent_of(args.dy), matrix_of(args.dy), matrix_of(args.gate_up), matrix_of(args.dgate_up),
                         stream.native());
  check_launch("swiglu_backward", args.gate_up);
}

}  // namespace megalith::ops::cuda
