#include "ops/vocabulary/row_order.h"

namespace megalith::ops {

void check(const Contract& contract, const OrderRows& args) {
  const int64_t rows = args.given.elements();
  contract.vector(args.given, "given", DType::i32, rows);
  contract.vector(args.order.keys, "keys", DType::i32, rows);
  contract.vector(args.order.rows, "rows", DType::i32, rows);
  contract.scratch(args.scratch, DType::i32, row_order_scratch(contract.device(), rows));
}
OpCost cost_of(const OrderRows& args) {
  return memory_cost(bytes_of(args.given, args.order.keys, args.order.rows), args.given);
}

}  // namespace megalith::ops
