#include "ops/step_scalars.h"

namespace megalith::ops {

void check(const Contract& contract, const SetStepScalars& args) {
  contract.require(args.scalars != nullptr, "no step scalars");
}
OpCost cost_of(const SetStepScalars&) {
  return {};
}

void check(const Contract& contract, const SetNumber& args) {
  contract.require(args.number != nullptr, "no number");
}
OpCost cost_of(const SetNumber&) {
  return {};
}

void check(const Contract& contract, const WeighStep& args) {
  contract.require(args.scalars != nullptr, "no step scalars");
  contract.require(args.total_weight != nullptr, "no total weight");
}
OpCost cost_of(const WeighStep&) {
  return {};
}

void check(const Contract& contract, const Sum& args) {
  contract.floats(args.x, "x");
  contract.vector(args.x, "x", args.x.dtype, args.x.elements());
  contract.vector(args.total, "total", DType::f64, 1);
}
OpCost cost_of(const Sum& args) {
  return memory_cost(bytes_of(args.x), args.x);
}

}  // namespace megalith::ops
