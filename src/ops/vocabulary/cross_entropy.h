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

// The same where ranks divide the columns. First each says what it knows of every row: statistics (3,N) in the main
// dtype are the largest of its logits (-inf where it has none), the sum of exp(logit - largest), and the logit of the
// target (0 where another rank has it). Column 0 here is column `first_column` of the whole, whose vocabulary is meant.
struct CrossEntropyPart {
  Tensor logits;
  Tensor targets;
  Tensor statistics;
  int64_t vocabulary = 0;
  int64_t first_column = 0;
};
MEGALITH_OP(cross_entropy_part, CrossEntropyPart)

// Then each knows the losses, and the gradient of its own columns. statistics (3 x ranks, N): of all ranks, in order.
struct CrossEntropyOfParts {
  Tensor logits;
  Tensor targets;
  Tensor weights;
  Tensor losses;
  Tensor statistics;
  int64_t vocabulary = 0;
  int64_t first_column = 0;
  bool with_gradient = true;
  const double* gradient_scale = nullptr;
};
MEGALITH_OP(cross_entropy_of_parts, CrossEntropyOfParts)

}  // namespace megalith::ops
