#include "ops/norm.h"

namespace megalith::ops {

namespace {

void check_statistics(const Contract& contract, NormKind kind, const Tensor& mean, const Tensor& rstd,
                      const Tensor& x) {
  contract.vector(rstd, "rstd", main_dtype(x.dtype), x.rows());
  if (kind == NormKind::layer_norm) contract.vector(mean, "mean", main_dtype(x.dtype), x.rows());
}

}  // namespace

void check(const Contract& contract, const NormForward& args) {
  contract.floats(args.x, "x");
  contract.operand(args.y, "y", args.x);
  contract.vector(args.weight, "weight", args.x.dtype, args.x.cols());
  if (args.bias) contract.vector(args.bias, "bias", args.x.dtype, args.x.cols());
  check_statistics(contract, args.kind, args.mean, args.rstd, args.x);
}
OpCost cost_of(const NormForward& args) {
  return memory_cost(bytes_of(args.x, args.weight, args.bias, args.y, args.mean, args.rstd), args.x, args.y);
}

void check(const Contract& contract, const NormBackward& args) {
  const int64_t cols = args.x.cols();
  const DType main = main_dtype(args.x.dtype);
  contract.floats(args.x, "x");
  contract.like(args.dy, "dy", args.x);
  contract.like(args.dx, "dx", args.x);
  if (args.residual_gradient) contract.like(args.residual_gradient, "residual_gradient", args.x);
  contract.vector(args.weight, "weight", args.x.dtype, cols);
  contract.vector(args.dweight, "dweight", main, cols);
  if (args.dbias) contract.vector(args.dbias, "dbias", main, cols);
  if (args.dx_sums) contract.vector(args.dx_sums, "dx_sums", main, cols);
  check_statistics(contract, args.kind, args.mean, args.rstd, args.x);
  contract.scratch(args.scratch, main, norm_backward_scratch(args.x.rows(), cols));
}
OpCost cost_of(const NormBackward& args) {
  OpCost cost = memory_cost(bytes_of(args.dy, args.x, args.mean, args.rstd, args.residual_gradient, args.dx), args.x);
  if (args.residual_gradient) cost.shape += " residual";
  return cost;
}

}  // namespace megalith::ops
