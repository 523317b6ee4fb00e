#include "ops/op.h"

namespace megalith::ops {

OpCost memory_cost(double bytes, const Tensor& tensor) {
  return {.bytes = bytes, .shape = fmt::format("{} {}", name_of(tensor.dtype), to_string(tensor.shape))};
}

OpCost memory_cost(double bytes, const Tensor& tensor, const Operand& result) {
  OpCost cost = memory_cost(bytes, tensor);
  if (!result.slot) return cost;
  if (!result) cost.shape += ", its amax";
  if (result) cost.shape += fmt::format(" to {}", name_of((result.rows ? result.rows : result.columns).dtype));
  if (result.rows) cost.shape += " rows";
  if (result.columns) cost.shape += " columns";
  return cost;
}

OpObservation::OpObservation(Stream& stream, OpListener listener) : stream_(stream), listener_(std::move(listener)) {
  stream_.set_observer(&listener_);
}

OpObservation::~OpObservation() {
  stream_.set_observer(nullptr);
}

}  // namespace megalith::ops
