#include "ops/elementwise.h"

#include "ops/cuda/elementwise_launch.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"

namespace megalith::ops::cuda {

void fill(Stream& stream, const Fill& args) {
  launch_fill(flat_extent(args.x), matrix_of(args.x), static_cast<float>(args.value), stream.native());
  check_launch("fill", args.x);
}

void cast(Stream& stream, const Cast& args) {
  launch_cast(flat_extent(args.x, args.y), matrix_of(args.x), matrix_of(args.y), element_of(args.y.dtype),
              stream.native());
  check_launch("cast", args.x);
}

void add(Stream& stream, const Add& args) {
  launch_add(flat_extent(args.a, args.b, args.y), matrix_of(args.a), matrix_of(args.b), matrix_of(args.y),
             stream.native());
  check_launch("add", args.a);
}

void bias_gradient(Stream& stream, const BiasGradient& args) {
  launch_bias_gradient({.extent = extent_of(args.dy),
                        .dy = matrix_of(args.dy),
                        .dbias = args.dbias.as<float>(),
                        .partials = args.scratch.as<float>(),
                        .max_partials = ceil_div(args.dy.rows(), kColumnTile)},
                       stream.native());
  check_launch("bias_gradient", args.dy);
}

void normal_init(Stream& stream, const NormalInit& args) {
  launch_normal_init({.extent = extent_of(args.x),
                      .x = matrix_of(args.x),
                      .key = args.key,
                      .mean = args.mean,
                      .std = args.std,
                      .first_element = static_cast<uint64_t>(args.row_offset * args.global_cols + args.col_offset),
                      .global_cols = args.global_cols},
                     stream.native());
  check_launch("normal_init", args.x);
}

}  // namespace megalith::ops::cuda
