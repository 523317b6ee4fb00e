#include "ops/rope.h"

namespace megalith::ops {

void check(const Contract& contract, const Rope& args) {
  const int64_t limit = args.angles_cos.rows();
  contract.floats(args.x, "x");
  contract.require(args.head_dim > 0 && args.head_dim % 2 == 0 && args.x.cols() % args.head_dim == 0,
                   "{} columns in heads of {}", args.x.cols(), args.head_dim);
  contract.matrix(args.angles_cos, "angles_cos", DType::f32, limit, args.head_dim / 2);
  contract.matrix(args.angles_sin, "angles_sin", DType::f32, limit, args.head_dim / 2);
  contract.positions(args.positions, args.position_offset, args.length, args.x.rows(), limit);
}
OpCost cost_of(const Rope& args) {
  return memory_cost(2.0 * bytes_of(args.x), args.x);
}

}  // namespace megalith::ops
