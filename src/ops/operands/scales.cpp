#include "ops/operands/scales.h"

namespace megalith::ops {

namespace {

void check_scales(const Contract& contract, const Scales& scales) {
  const int64_t slots = scales.amax.elements();
  contract.vector(scales.amax, "amax", DType::i32, slots);
  contract.vector(scales.largest, "largest", DType::f32, slots);
  contract.vector(scales.scale, "scale", DType::f32, slots);
  contract.matrix(scales.inverse, "inverse", DType::f32, slots, 1);
  if (scales.history) contract.matrix(scales.history, "history", DType::f32, slots, scales.history.cols());
}

}  // namespace

void check(const Contract& contract, const InspectAmax& args) {
  check_scales(contract, args.scales);
  contract.vector(args.findings, "findings", DType::i32, args.scales.amax.elements());
  contract.require(args.squared_norm != nullptr && args.saturations != nullptr, "there is nowhere to write to");
}
OpCost cost_of(const InspectAmax& args) {
  return memory_cost(bytes_of(args.scales.amax, args.scales.scale, args.findings), args.scales.amax);
}

void check(const Contract& contract, const UpdateScales& args) {
  check_scales(contract, args.scales);
}
OpCost cost_of(const UpdateScales& args) {
  return memory_cost(2.0 * bytes_of(args.scales.history, args.scales.amax), args.scales.amax);
}

}  // namespace megalith::ops
