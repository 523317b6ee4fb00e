#include "ops/activation.h"

#include "ops/cuda/activation_launch.h"
#include "ops/cuda/check.h"
#include "ops/cuda/launch.h"

namespace megalith::ops::cuda {

void gelu_forward(Stream& stream, const GeluForward& args) {
  check_matrix(args.x, "x", args.x.dtype, args.x.rows(), args.x.cols());
  check_matrix(args.y, "y", args.x.dtype, args.x.rows(), args.x.cols());
  launch_gelu_forward(flat_extent(args.x, args.y), matrix_of(args.x), matrix_of(args.y), stream.native());
  check_launch("gelu_forward", args.x);
}

void gelu_backward(Stream& stream, const GeluBackward& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  check_matrix(args.x, "x", args.x.dtype, rows, cols);
  check_matrix(args.dy, "dy", args.x.dtype, rows, cols);
  check_matrix(args.dx, "dx", args.x.dtype, rows, cols);
  GeluBackwardLaunch launch{.extent = flat_extent(args.x, args.dy, args.dx),
                            .dy = matrix_of(args.dy),
                            .x = matrix_of(args.x),
                            .dx = matrix_of(args.dx)};
  if (args.dbias) {
    check_vector(args.dbias, "dbias", DType::f32, cols);
    check_scratch(args.scratch, DType::f32, column_sum_scratch(rows, cols));
    launch.extent = extent_of(args.x);
    launch.dbias = args.dbias.as<float>();
    launch.partials = args.scratch.as<float>();
    launch.max_partials = ceil_div(rows, kColumnTile);
  }
  launch_gelu_backward(launch, stream.native());
  check_launch("gelu_backward", args.x);
}

void swiglu_forward(Stream& stream, const SwigluForward& args) {
  check_matrix(args.y, "y", args.y.dtype, args.y.rows(), args.y.cols());
  check_matrix(args.gate_up, "gate_up", args.y.dtype, args.y.rows(), 2 * args.y.cols());
  launch_swiglu_forward(extent_of(args.y), matrix_of(args.gate_up), matrix_of(args.y), stream.native());
  check_launch("swiglu_forward", args.gate_up);
}

void swiglu_backward(Stream& stream, const SwigluBackward& args) {
  check_matrix(args.dy, "dy", args.dy.dtype, args.dy.rows(), args.dy.cols());
  check_matrix(args.gate_up, "gate_up", args.dy.dtype, args.dy.rows(), 2 * args.dy.cols());
  check_matrix(args.dgate_up, "dgate_up", args.dy.dtype, args.dy.rows(), 2 * args.dy.cols());
  launch_swiglu_backward(extent_of(args.dy), matrix_of(args.dy), matrix_of(args.gate_up), matrix_of(args.dgate_up),
                         stream.native());
  check_launch("swiglu_backward", args.gate_up);
}

}  // namespace megalith::ops::cuda
