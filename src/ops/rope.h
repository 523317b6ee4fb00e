#pragma once

#include "ops/op.h"

namespace megalith::ops {

// Rotates, in place, each head of x by the angle of its position (rotate-half layout: channel i pairs with i + D/2).
//   x (N, heads*D), rows may be strided: the q or the k columns of a packed qkv.
//   angles_cos, angles_sin (positions, D/2) f32. Row r of x stands at position `position_offset + r % length`,
//   or at positions[r] where those are given: (N) i32.
//   inverse rotates back: the backward pass.
struct Rope {
  Tensor x;
  int64_t head_dim = 0;
  int64_t length = 0;
  int64_t position_offset = 0;
  Tensor positions = {};
  Tensor angles_cos;
  Tensor angles_sin;
  bool inverse = false;
};
MEGALITH_OP(rope, Rope)

}  // namespace megalith::ops
