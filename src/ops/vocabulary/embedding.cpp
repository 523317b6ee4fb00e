#include "ops/vocabulary/embedding.h"

#include <algorithm>

namespace megalith::ops {

namespace {

void check_ids(const Contract& contract, const Tensor& ids, int64_t rows, bool is_part, int64_t first_id) {
  contract.vector(ids, "ids", DType::i32, rows);
  contract.require(is_part || first_id == 0, "a whole table from token {} on", first_id);
}

void check_order(const Contract& contract, const RowOrder& order, int64_t rows) {
  if (contract.device() == Device::cpu && !order) return;
  contract.vector(order.keys, "keys", DType::i32, rows);
  contract.vector(order.rows, "rows", DType::i32, rows);
}

}  // namespace

void check(const Contract& contract, const EmbeddingForward& args) {
  const int64_t rows = args.out.rows();
  const int64_t cols = args.out.cols();
  contract.floats(args.out, "out");
  contract.matrix(args.tokens_table, "tokens_table", args.out.dtype, args.tokens_table.rows(), cols);
  check_ids(contract, args.ids, rows, args.is_part, args.first_id);
  if (!args.positions_table) return;
  const int64_t limit = args.positions_table.rows();
  contract.matrix(args.positions_table, "positions_table", args.out.dtype, limit, cols);
  contract.positions(args.positions, args.position_offset, args.length, rows, limit);
}
// A row of a table is read for each token; of the positions, at most as often as there are rows.
OpCost cost_of(const EmbeddingForward& args) {
  const int64_t positions = std::min(args.out.rows(), args.positions_table ? args.positions_table.rows() : 0);
  const auto position_bytes = static_cast<double>(positions * args.out.cols() * size_of(args.out.dtype));
  return memory_cost(2.0 * bytes_of(args.out) + bytes_of(args.ids) + position_bytes, args.out);
}

void check(const Contract& contract, const EmbeddingBackward& args) {
  const int64_t rows = args.dout.rows();
  const int64_t cols = args.dout.cols();
  const DType main = main_dtype(args.dout.dtype);
  contract.floats(args.dout, "dout");
  contract.matrix(args.tokens_gradient, "tokens_gradient", main, args.tokens_gradient.rows(), cols);
  check_ids(contract, args.ids, rows, args.is_part, args.first_id);
  check_order(contract, args.order, rows);
  contract.scratch(args.scratch, DType::f32, embedding_backward_scratch(contract.device(), rows, cols));
  if (!args.positions_gradient) return;
  const int64_t limit = args.positions_gradient.rows();
  contract.matrix(args.positions_gradient, "positions_gradient", main, limit, cols);
  contract.positions(args.positions, 0, args.length, rows, limit);
  if (args.positions) check_order(contract, args.positions_order, rows);
}
// A row of the gradient is read and written for each token, at most as often as there are rows.
OpCost cost_of(const EmbeddingBackward& args) {
  const auto main = static_cast<double>(size_of(args.tokens_gradient.dtype));
  const auto rows = static_cast<double>(std::min(args.dout.rows(), args.tokens_gradient.rows()));
  const double positions = args.positions_gradient ? 2.0 * bytes_of(args.positions_gradient) : 0.0;
  return memory_cost(
      bytes_of(args.dout, args.ids) + 2.0 * rows * static_cast<double>(args.dout.cols()) * main + positions, args.dout);
}

}  // namespace megalith::ops
