#pragma once

#include <string>

#include "ops/operands/operand.h"

namespace megalith::ops {

enum class OpKind { product, attention, memory };  // what bounds it: matrix units, those through softmax, or bandwidth

// What an operation must do at least: each input read once, each output written once.
struct OpCost {
  OpKind kind = OpKind::memory;
  double flops = 0.0;
  double bytes = 0.0;
  std::string shape;  // for people; operations of one name and shape cost the same
};

// Absent tensors have no bytes.
template <class... Tensors>
double bytes_of(const Tensors&... tensors) {
  return (static_cast<double>(tensors.bytes()) + ...);
}

// The cost of an operation that is bound by bandwidth, told by the dtype and shape of one of its tensors.
OpCost memory_cost(double bytes, const Tensor& tensor);
// The same, told as well by what is written of its result.
OpCost memory_cost(double bytes, const Tensor& tensor, const Operand& result);

}  // namespace megalith::ops
