#include "ops/op.h"

namespace megalith::ops {

OpCost memory_cost(double bytes, const Tensor& tensor) {
  return {.bytes = bytes, .shape = fmt::format("{} {}", name_of(tensor.dtype), to_string(tensor.shape))};
}

OpObservation::OpObservation(Stream& stream, OpListener listener) : stream_(stream), listener_(std::move(listener)) {
  stream_.set_observer(&listener_);
}

OpObservation::~OpObservation() {
  stream_.set_observer(nullptr);
}

}  // namespace megalith::ops
