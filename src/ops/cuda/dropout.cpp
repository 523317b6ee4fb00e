#include "ops/dropout.h"

#include "ops/cuda/check.h"
#include "ops/cuda/dropout_draw.h"
#include "ops/cuda/launch.h"

namespace megalith::ops::cuda {

void dropout_add(Stream& stream, const DropoutAdd& args) {
  const int64_t rows = args.x.rows();
  const int64_t cols = args.x.cols();
  check_matrix(args.x, "x", args.x.dtype, rows, cols);
  check_matrix(args.y, "y", args.x.dtype, rows, cols);
  if (args.residual) check_matrix(args.residual, "residual", args.x.dtype, rows, cols);
  const bool drops = args.dropout.probability != 0.0;
  const DropoutDraw draw = draw_of(args.dropout, rows);
  if (!drops && !args.residual && args.x.data == args.y.data) return;
  launch_dropout_add({.extent = drops ? extent_of(args.x) : flat_extent(args.x, args.y, args.residual),
                      .x = matrix_of(args.x),
                      .residual = matrix_of(args.residual),
                      .y = matrix_of(args.y),
                      .drops = drops,
                      .draw = draw},
                     stream.native());
  check_launch("dropout_add", args.x);
}

}  // namespace megalith::ops::cuda
