#pragma once

#include "ops/op.h"

namespace megalith::ops {

// partials[i] = the sum of squares of tile i of x, kSquareTile elements a tile, in double. A sum that is not finite
// tells of a gradient that is not finite.   x contiguous, floating point; partials: f64, ceil(elements / kSquareTile).
constexpr int64_t kSquareTile = 1 << 16;
struct SumOfSquares {
  Tensor x;
  Tensor partials;
};
MEGALITH_OP(sum_of_squares, SumOfSquares)

// What changes from step to step, in the memory of the stream's device: no kernel argument depends on the step.
struct UpdateScalars {
  float learning_rate = 0.0F;
  float bias_correction1 = 1.0F;  // 1 - beta1^t
  float bias_correction2 = 1.0F;  // 1 - beta2^t
  float gradient_factor = 1.0F;   // clipping
  int32_t skip = 0;               // 1: leave weights and moments as they are
};

// AdamW (Loshchilov and Hutter, 2019) on one contiguous run of parameters:
//   g = gradient_factor * gradient; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
//   w = w - lr * ((m / bc1) / (sqrt(v / bc2) + epsilon) + weight_decay * w)
// computed in the main dtype on `master` (which is `weights` itself where that is in the main dtype), then rounded into
// `weights`.
struct AdamW {
  Tensor weights;
  Tensor master;
  Tensor gradient;
  Tensor exp_avg;
  Tensor exp_avg_sq;
  const UpdateScalars* scalars = nullptr;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};
MEGALITH_OP(adamw, AdamW)

}  // namespace megalith::ops
