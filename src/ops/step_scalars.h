#pragma once

#include "ops/op.h"

namespace megalith::ops {

// What every micro batch of a step reads, in the memory of the stream's device.
struct StepScalars {
  uint64_t step = 0;            // dropout draws anew each step
  double gradient_scale = 0.0;  // 1 / the weight of all tokens of the step
};

// Writes them. Its arguments are values: it is not for recorded work.
struct SetStepScalars {
  StepScalars* scalars = nullptr;
  StepScalars values;
};
MEGALITH_OP(set_step_scalars, SetStepScalars)

// *number = value, in the memory of the stream's device. Its argument is a value: it is not for recorded work.
struct SetNumber {
  double* number = nullptr;
  double value = 0.0;
};
MEGALITH_OP(set_number, SetNumber)

// gradient_scale = 1 / *total_weight, or 0 where no token counts: for a weight that ranks have summed on the device.
struct WeighStep {
  StepScalars* scalars = nullptr;
  const double* total_weight = nullptr;
};
MEGALITH_OP(weigh_step, WeighStep)

// total = (adds ? total : 0) + the sum of x, in double and in a fixed order.   x (N) floating point; total (1) f64
struct Sum {
  Tensor x;
  Tensor total;
  bool adds = false;
};
MEGALITH_OP(sum, Sum)

}  // namespace megalith::ops
