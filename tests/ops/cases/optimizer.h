#pragma once

#include "ops/cases/op_case.h"
#include "ops/optimizer.h"

namespace megalith::ops::testing {

// The state of one parameter: weights "w", gradient "g", moments "m" and "v". It begins `offset` elements into its
// memory, so that not every parameter is aligned.
struct Parameter {
  Buffer weights, remainder, gradient, exp_avg, exp_avg_sq;

  Parameter(DType dtype, const Named& in, int64_t offset);

  UpdateTensors tensors(float weight_decay) const;
  Values master() const;
  Values values(const Buffer& buffer) const;

 private:
  Tensor part(const Buffer& buffer) const;

  int64_t offset_;
};

struct ClipCase {
  double max_norm = 0.0;
  bool skip_stays = false;
  int32_t skip_before = 0;
};
// gradient_norm, then clip_gradients, of three parameters: "g0", "g1", "g2".
Runner run_gradient_norm(const ClipCase& c);
Named gradients_of(int64_t size);

inline constexpr float kDecay = 0.125F;
UpdateScalars some_scalars(int32_t skip = 0);
// The same parameter twice: aligned and with decay kDecay, then ("_plain") not aligned and without.
Runner run_adamw(UpdateScalars given);
Named naive_adamw(const Named& in);
Named adam_inputs(int64_t size);

}  // namespace megalith::ops::testing
