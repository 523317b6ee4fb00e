#include "ops/vocabulary/cross_entropy.h"

namespace megalith::ops {

namespace {

void check_rows(const Contract& contract, const Tensor& logits, const Tensor& targets) {
  contract.floats(logits, "logits");
  contract.vector(targets, "targets", DType::i32, logits.rows());
}

void check_losses(const Contract& contract, const Tensor& logits, const Tensor& weights, const Tensor& losses) {
  contract.vector(weights, "weights", main_dtype(logits.dtype), logits.rows());
  contract.vector(losses, "losses", main_dtype(logits.dtype), logits.rows());
}

void check_part(const Contract& contract, int64_t vocabulary, int64_t first_column) {
  contract.require(vocabulary > 0 && first_column >= 0, "columns from {} on of a vocabulary of {}", first_column,
                   vocabulary);
}

}  // namespace

void check(const Contract& contract, const CrossEntropy& args) {
  check_rows(contract, args.logits, args.targets);
  check_losses(contract, args.logits, args.weights, args.losses);
  contract.require(0 < args.vocabulary && args.vocabulary <= args.logits.cols(), "a vocabulary of {} in {} columns",
                   args.vocabulary, args.logits.cols());
}
OpCost cost_of(const CrossEntropy& args) {
  const double reads_and_writes = args.with_gradient ? 2.0 : 1.0;
  return memory_cost(reads_and_writes * bytes_of(args.logits) + bytes_of(args.targets, args.weights, args.losses),
                     args.logits);
}

void check(const Contract& contract, const CrossEntropyPart& args) {
  check_rows(contract, args.logits, args.targets);
  contract.matrix(args.statistics, "statistics", main_dtype(args.logits.dtype), 3, args.logits.rows());
  check_part(contract, args.vocabulary, args.first_column);
}
OpCost cost_of(const CrossEntropyPart& args) {
  return memory_cost(bytes_of(args.logits, args.targets, args.statistics), args.logits);
}

void check(const Contract& contract, const CrossEntropyOfParts& args) {
  check_rows(contract, args.logits, args.targets);
  check_losses(contract, args.logits, args.weights, args.losses);
  const int64_t ranks = args.statistics.rows() / 3;
  contract.matrix(args.statistics, "statistics", main_dtype(args.logits.dtype), 3 * ranks, args.logits.rows());
  check_part(contract, args.vocabulary, args.first_column);
}
OpCost cost_of(const CrossEntropyOfParts& args) {
  const double reads_and_writes = args.with_gradient ? 2.0 : 0.0;
  return memory_cost(
      reads_and_writes * bytes_of(args.logits) + bytes_of(args.targets, args.weights, args.losses, args.statistics),
      args.logits);
}

}  // namespace megalith::ops
