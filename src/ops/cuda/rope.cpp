#include "ops/rope.h"

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/rope_launch.h"

namespace megalith::ops::cuda {

void rope(Stream& stream, const Rope& args) {
  launch_rope({.extent = extent_of(args.x),
               .x = matrix_of(args.x),
               .head_dim = args.head_dim,
               .positions = positions_of(args.positions, args.position_offset, args.length),
               .cosines = matrix_of(args.angles_cos),
               .sines = matrix_of(args.angles_sin),
               .inverse = args.inverse},
              stream.native());
  check_launch("rope", args.x);
}

}  // namespace megalith::ops::cuda
