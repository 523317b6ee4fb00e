#pragma once

#include "ops/op.h"

namespace megalith::ops {

// total = (adds ? total : 0) + the sum of x, in double and in a fixed order.   x (N) floating point; total (1) f64
struct Sum {
  Tensor x;
  Tensor total;
  bool adds = false;
};
MEGALITH_OP(sum, Sum)

}  // namespace megalith::ops
