#include "ops/activation.h"

namespace megalith::ops {

void check(const Contract& contract, const GeluForward& args) {
  contract.floats(args.x, "x");
  contract.operand(args.y, "y", args.x);
}
OpCost cost_of(const GeluForward& args) {
  return memory_cost(bytes_of(args.x, args.y), args.x, args.y);
}

void check(const Contract& contract, const GeluBackward& args) {
  contract.floats(args.x, "x");
  contract.like(args.dy, "dy", args.x);
  contract.operand(args.dx, "dx", args.x);
  if (!args.dbias) return;
  const DType main = main_dtype(args.x.dtype);
  contract.vector(args.dbias, "dbias", main, args.x.cols());
  contract.scratch(args.scratch, main, column_sum_scratch(args.x.rows(), args.x.cols()));
}
OpCost cost_of(const GeluBackward& args) {
  return memory_cost(bytes_of(args.dy, args.x, args.dx, args.dbias), args.x, args.dx);
}

void check(const Contract& contract, const SwigluForward& args) {
  contract.floats(args.gate_up, "gate_up");
  contract.require(args.gate_up.cols() % 2 == 0, "'gate_up' has {} columns", args.gate_up.cols());
  contract.operand(args.y, "y", args.gate_up.dtype, args.gate_up.rows(), args.gate_up.cols() / 2);
}
OpCost cost_of(const SwigluForward& args) {
  return memory_cost(bytes_of(args.gate_up, args.y), args.gate_up.slice_cols(0, args.gate_up.cols() / 2), args.y);
}

void check(const Contract& contract, const SwigluBackward& args) {
  contract.floats(args.dy, "dy");
  contract.matrix(args.gate_up, "gate_up", args.dy.dtype, args.dy.rows(), 2 * args.dy.cols());
  contract.operand(args.dgate_up, "dgate_up", args.gate_up);
}
OpCost cost_of(const SwigluBackward& args) {
  return memory_cost(bytes_of(args.dy, args.gate_up, args.dgate_up), args.dy, args.dgate_up);
}

}  // namespace megalith::ops
