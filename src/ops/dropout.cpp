#include "ops/dropout.h"

namespace megalith::ops {

void check(const Contract& contract, const Dropout& dropout, int64_t samples) {
  contract.require(0.0 <= dropout.probability && dropout.probability < 1.0, "dropout probability {}",
                   dropout.probability);
  if (dropout.probability == 0.0) return;
  contract.require(dropout.step != nullptr, "dropout without a step");
  contract.vector(dropout.sample_ids, "sample_ids", DType::i64, samples);
}

void check(const Contract& contract, const DropoutAdd& args) {
  contract.floats(args.x, "x");
  contract.like(args.y, "y", args.x);
  if (args.residual) contract.like(args.residual, "residual", args.x);
  const Dropout& dropout = args.dropout;
  const int64_t samples = dropout.sample_ids.elements();
  check(contract, dropout, samples);
  if (dropout.probability == 0.0) return;
  contract.require(
      dropout.length > 0 && dropout.first_row >= 0 && dropout.first_row + args.x.rows() <= samples * dropout.length,
      "dropout of {} rows from {} on, of {} samples of length {}", args.x.rows(), dropout.first_row, samples,
      dropout.length);
  if (dropout.first_positions) contract.vector(dropout.first_positions, "first_positions", DType::i32, samples);
}
OpCost cost_of(const DropoutAdd& args) {
  return memory_cost(bytes_of(args.x, args.residual, args.y), args.x);
}

}  // namespace megalith::ops
