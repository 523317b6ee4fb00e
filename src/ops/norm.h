#pragma once

#include "ops/op.h"

namespace megalith::ops {

enum class NormKind { layer_norm, rms_norm };

// y = (x - mean) * rstd * weight + bias (LayerNorm), or x * rstd * weight (RMSNorm), over the last dimension.
//   x, y (N,C); weight, bias (C): one dtype. bias is absent for RMSNorm.
//   mean (LayerNorm only), rstd (N): main dtype.
struct NormForward {
  NormKind kind = NormKind::layer_norm;
  Tensor x;
  Tensor weight;
  Tensor bias = {};
  Operand y;
  Tensor mean = {};
  Tensor rstd;
  double epsilon = 1e-5;
};
MEGALITH_OP(norm_forward, NormForward)

// dx = residual_gradient + (gradient of the norm with respect to x); dweight += ..., dbias += ... (main dtype).
//   dx_sums (C) main dtype, optional: += the column sums of dx which is the gradient of a bias that
//   was added into x. dx may be the same memory as residual_gradient or as dy.
//   scratch: main dtype, norm_backward_scratch(N, C) elements.
struct NormBackward {
  NormKind kind = NormKind::layer_norm;
  Tensor dy;
  Tensor x;
  Tensor weight;
  Tensor mean = {};
  Tensor rstd;
  Tensor residual_gradient;
  Tensor dx;
  Tensor dweight;
  Tensor dbias = {};
  Tensor dx_sums = {};
  Tensor scratch;
};
MEGALITH_OP(norm_backward, NormBackward)

// Partial sums of dweight, dbias and dx_sums, one row of each per tile of tokens.
constexpr int64_t kNormTile = 32;
constexpr int64_t norm_backward_scratch(int64_t tokens, int64_t channels) {
  return 3 * ceil_div(tokens, kNormTile) * channels;
}

}  // namespace megalith::ops
