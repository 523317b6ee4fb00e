#pragma once

#include <span>
#include <vector>

#include "ops/op.h"

namespace megalith::ops {

// One parameter, or the piece of one that this rank updates, as the optimizer sees it: equal sizes, all contiguous.
struct UpdateTensors {
  Tensor weights;
  Tensor remainder;  // i16, of bf16 weights: with them, master weights in fp32 (split_float); absent for others
  Tensor gradient;
  Tensor exp_avg;
  Tensor exp_avg_sq;
  float weight_decay = 0.0F;
};

// At most kUpdateTile elements of one parameter. An operation over all parameters is one launch over their tiles.
struct UpdateTile {
  void* weights = nullptr;
  void* remainder = nullptr;
  const void* gradient = nullptr;
  void* exp_avg = nullptr;
  void* exp_avg_sq = nullptr;
  int32_t elements = 0;
  int32_t parameter = 0;
  float weight_decay = 0.0F;
};
constexpr int64_t kUpdateTile = 1 << 16;
std::vector<UpdateTile> make_update_tiles(std::span<const UpdateTensors> parameters);
int64_t count_update_tiles(std::span<const UpdateTensors> parameters);

// The tiles of all parameters, in the memory of the stream's device.
struct UpdateTiles {
  const UpdateTile* tiles = nullptr;
  int64_t count = 0;
  int64_t elements = 0;        // of all tiles together
  DType weights = DType::f32;  // the dtype of every `weights`; all else is in its main dtype
};

// What changes from step to step, in the memory of the stream's device: no kernel argument depends on the step.
struct UpdateScalars {
  // Set by set_update_scalars.
  float learning_rate = 0.0F;
  float bias_correction1 = 1.0F;  // 1 - beta1^t
  float bias_correction2 = 1.0F;  // 1 - beta2^t
  // Set by gradient_norm.
  int32_t first_non_finite = -1;  // the lowest parameter with a gradient that is not finite
  double squared_norm = 0.0;
  // Set by clip_gradients.
  double gradient_norm = 0.0;
  float gradient_factor = 1.0F;
  int32_t skip = 0;  // 1: leave weights and moments as they are
};

// Writes what the host decides about a step. Its arguments are values: it is not for recorded work.
struct SetUpdateScalars {
  UpdateScalars* scalars = nullptr;
  float learning_rate = 0.0F;
  float bias_correction1 = 1.0F;
  float bias_correction2 = 1.0F;
};
MEGALITH_OP(set_update_scalars, SetUpdateScalars)

// squared_norm and first_non_finite of all gradients, summed tile by tile in a fixed order.
//   partials (tiles) f64: scratch.
struct GradientNorm {
  UpdateTiles tiles;
  Tensor partials;
  UpdateScalars* scalars = nullptr;
};
MEGALITH_OP(gradient_norm, GradientNorm)

// Megatron's guard against division by a zero norm.
constexpr double kNormEpsilon = 1e-6;

// gradient_factor = min(1, max_norm / (norm + kNormEpsilon)), or 1 where max_norm is 0; skip = 1 where the norm is not
// finite. With `skip_stays`, a skip is never taken back: nothing changes after the first gradient that is not finite.
struct ClipGradients {
  UpdateScalars* scalars = nullptr;
  double max_norm = 0.0;
  bool skip_stays = false;
};
MEGALITH_OP(clip_gradients, ClipGradients)

// AdamW (Loshchilov and Hutter, 2019) on all parameters:
//   g = gradient_factor * gradient; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
//   w = w - lr * ((m / bc1) / (sqrt(v / bc2) + epsilon) + weight_decay * w)
// computed in the main dtype: on the weights, or on what bf16 weights and their remainders are together.
struct AdamW {
  UpdateTiles tiles;
  const UpdateScalars* scalars = nullptr;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
};
MEGALITH_OP(adamw, AdamW)

}  // namespace megalith::ops
