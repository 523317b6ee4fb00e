#include "ops/elementwise.h"

namespace megalith::ops {

void check(const Contract& contract, const Fill& args) {
  contract.floats(args.x, "x");
}
OpCost cost_of(const Fill& args) {
  return memory_cost(bytes_of(args.x), args.x);
}

void check(const Contract& contract, const Cast& args) {
  contract.floats(args.x, "x");
  contract.floats(args.y, "y");
  contract.matrix(args.y, "y", args.y.dtype, args.x.rows(), args.x.cols());
}
OpCost cost_of(const Cast& args) {
  return memory_cost(bytes_of(args.x, args.y), args.x);
}

void check(const Contract& contract, const Add& args) {
  contract.floats(args.a, "a");
  contract.like(args.b, "b", args.a);
  contract.like(args.y, "y", args.a);
}
OpCost cost_of(const Add& args) {
  return memory_cost(bytes_of(args.a, args.b, args.y), args.a);
}

void check(const Contract& contract, const BiasGradient& args) {
  const DType main = main_dtype(args.dy.dtype);
  contract.floats(args.dy, "dy");
  contract.vector(args.dbias, "dbias", main, args.dy.cols());
  contract.scratch(args.scratch, main, column_sum_scratch(args.dy.rows(), args.dy.cols()));
}
OpCost cost_of(const BiasGradient& args) {
  return memory_cost(bytes_of(args.dy, args.dbias), args.dy);
}

void check(const Contract& contract, const NormalInit& args) {
  const int64_t cols = args.x.cols();
  contract.floats(args.x, "x");
  contract.require(args.row_offset >= 0 && args.col_offset >= 0 && args.col_offset + cols <= args.global_cols,
                   "columns [{}, {} + {}) of {}", args.col_offset, args.col_offset, cols, args.global_cols);
}
OpCost cost_of(const NormalInit& args) {
  return memory_cost(bytes_of(args.x), args.x);
}

}  // namespace megalith::ops
