#include "ops/rope.h"

#include "ops/cuda/check.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/rope_launch.h"

namespace megalith::ops::cuda {

void rope(Stream& stream, const Rope& args) {
  const int64_t rows = args.x.rows();
  const int64_t heads = div_exact(args.x.cols(), args.head_dim);
  const int64_t half = div_exact(args.head_dim, 2);
  const int64_t limit = args.angles_cos.rows();
  check_matrix(args.x, "x", args.x.dtype, rows, heads * args.head_dim);
  check_matrix(args.angles_cos, "angles_cos", DType::f32, limit, half);
  check_matrix(args.angles_sin, "angles_sin", DType::f32, limit, half);
  launch_rope({.extent = extent_of(args.x),
               .x = matrix_of(args.x),
               .head_dim = args.head_dim,
               .positions = positions_of(args.positions, args.position_offset, args.length, rows, limit),
               .cosines = matrix_of(args.angles_cos),
               .sines = matrix_of(args.angles_sin),
               .inverse = args.inverse},
              stream.native());
  check_launch("rope", args.x);
}

}  // namespace megalith::ops::cuda
