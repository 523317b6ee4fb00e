#include "ops/operands/quantize.h"

#include "ops/elementwise.h"

namespace megalith::ops {

void check(const Contract& contract, const Quantize& args) {
  contract.floats(args.x, "x");
  contract.require(static_cast<bool>(args.y.slot), "'y' has no slot");
  contract.operand(args.y, "y", args.x);
  if (!args.dbias) return;
  const DType main = main_dtype(args.x.dtype);
  contract.vector(args.dbias, "dbias", main, args.x.cols());
  contract.scratch(args.scratch, main, column_sum_scratch(args.x.rows(), args.x.cols()));
}
OpCost cost_of(const Quantize& args) {
  return memory_cost(bytes_of(args.x, args.y, args.dbias), args.x, args.y);
}

void check(const Contract& contract, const Transpose& args) {
  contract.require(is_fp8(args.rows.dtype), "'rows' holds {}, which is not an fp8 type", name_of(args.rows.dtype));
  contract.matrix(args.rows, "rows", args.rows.dtype, args.rows.rows(), args.rows.cols());
  contract.matrix(args.columns, "columns", args.rows.dtype, args.rows.cols(), args.rows.rows());
}
OpCost cost_of(const Transpose& args) {
  return memory_cost(bytes_of(args.rows, args.columns), args.rows);
}

}  // namespace megalith::ops
