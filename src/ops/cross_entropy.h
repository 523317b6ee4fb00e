#pragma once

#include "ops/op.h"

namespace megalith::ops {

// losses[r] = weights[r] * (log sum exp(logits[r]) - logits[r][targets[r]]), over the first `vocabulary` columns; the
// padding beyond them takes no part. Where with_gradient is set, logits become their own gradient:
// weights[r] * *gradient_scale * (softmax - onehot), zero in the padding.
//   logits (N,V); targets (N) i32; weights, losses (N) f32 (f64 where logits are f64). A row of weight 0 has loss 0.
struct CrossEntropy {
  Tensor logits;
  Tensor targets;
  Tensor weights;
  Tensor losses;
  int64_t vocabulary = 0;
  bool with_gradient = true;
  const double* gradient_scale = nullptr;  // in the memory of the stream's device; null: 1
};
MEGALITH_OP(cross_entropy, CrossEntropy)

}  // namespace megalith::ops
