#include "ops/elementwise.h"

#include "ops/cuda/check.h"
#include "ops/cuda/elementwise_launch.h"
#include "ops/cuda/launch.h"

namespace megalith::ops::cuda {

void fill(Stream& stream, const Fill& args) {
  check_matrix(args.x, "x", args.x.dtype, args.x.rows(), args.x.cols());
  launch_fill(flat_extent(args.x), matrix_of(args.x), static_cast<float>(args.value), stream.native());
  check_launch("fill", args.x);
}

void cast(Stream& stream, const Cast& args) {
  check_matrix(args.x, "x", args.x.dtype, args.x.rows(), args.x.cols());
  check_matrix(args.y, "y", args.y.dtype, args.x.rows(), args.x.cols());
  launch_cast(flat_extent(args.x, args.y), matrix_of(args.x), matrix_of(args.y), element_of(args.y.dtype),
              stream.native());
  check_launch("cast", args.x);
}

void bias_gradient(Stream& stream, const BiasGradient& args) {
  const int64_t rows = args.dy.rows();
  const int64_t cols = args.dy.cols();
  check_matrix(args.dy, "dy", args.dy.dtype, rows, cols);
  const Extent extent = extent_of(args.dy);
  check_vector(args.dbias, "dbias", DType::f32, cols);
  check_scratch(args.scratch, DType::f32, column_sum_scratch(rows, cols));
  launch_bias_gradient({.extent = extent,
                        .dy = matrix_of(args.dy),
                        .dbias = args.dbias.as<float>(),
                        .partials = args.scratch.as<float>(),
                        .max_partials = ceil_div(rows, kColumnTile)},
                       stream.native());
  check_launch("bias_gradient", args.dy);
}

void normal_init(Stream& stream, const NormalInit& args) {
  const int64_t cols = args.x.cols();
  check_matrix(args.x, "x", args.x.dtype, args.x.rows(), cols);
  MEGALITH_CHECK(args.row_offset >= 0 && args.col_offset >= 0 && args.col_offset + cols <= args.global_cols,
                 "columns [{}, {} + {}) of {}", args.col_offset, args.col_offset, cols, args.global_cols);
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
