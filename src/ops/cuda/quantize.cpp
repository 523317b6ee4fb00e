#include "ops/operands/quantize.h"

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/quantize_launch.h"

namespace megalith::ops::cuda {

void quantize(Stream& stream, const Quantize& args) {
  launch_quantize({.extent = extent_of(args.x),
                   .x = matrix_of(args.x),
                   .y = fp8_of(args.y),
                   .dbias = data_or_null<float>(args.dbias),
                   .partials = data_or_null<float>(args.scratch)},
                  stream.native());
  check_launch("quantize", args.x);
}

void transpose(Stream& stream, const Transpose& args) {
  launch_transpose(args.rows.rows(), args.rows.cols(), matrix_of(args.rows), matrix_of(args.columns), stream.native());
  check_launch("transpose", args.rows);
}

}  // namespace megalith::ops::cuda
