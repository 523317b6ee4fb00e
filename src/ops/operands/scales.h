#pragma once

#include "ops/op.h"
#include "ops/optimizer.h"

namespace megalith::ops {

// The largest finite number of an fp8 type.
constexpr float largest_of(DType dtype) {
  return dtype == DType::e4m3 ? 448.0F : 57344.0F;
}

// Bytes between the inverses that GEMMs read: cuBLASLt 12.9.1 and later refuse a scale that is not aligned so.
constexpr int64_t kInverseAlignment = 16;

// Slots (S) of fp8 operands, in the memory of the device.
struct Scales {
  Tensor amax;     // (S) i32: the bits of the largest |x| since it was last zero
  Tensor largest;  // (S) f32: largest_of() the type
  Tensor scale;    // (S) f32
  Tensor inverse;  // (S,1) f32, rows kInverseAlignment apart
  Tensor history;  // (S, length) f32: the amax of the last steps, newest first, 0 before there were any; absent: none

  Slot slot(int64_t index) const {
    return {.scale = scale.as<float>() + index,
            .inverse = inverse.row<float>(index),
            .amax = reinterpret_cast<uint32_t*>(amax.as<int32_t>()) + index};
  }
};

// What the amax of a slot says of its operand.
enum class Finding : int32_t { none, saturated, not_finite };

// What the amax of a step say, before its update. Infinity and NaN count as gradients that are not finite, since fp8
// has hidden them: squared_norm becomes NaN.
//   findings (S) i32: saturated where something finite was beyond the largest number of the type; saturations: how many
//   slots are so.
struct InspectAmax {
  Scales scales;
  double* squared_norm = nullptr;
  Tensor findings = {};
  double* saturations = nullptr;
};
MEGALITH_OP(inspect_amax, InspectAmax)

// What becomes of the history.
enum class Remember {
  as_newest,   // the amax is its new first entry, and the oldest is dropped
  in_place,    // the amax takes the place of the first entry
  not_at_all,  // the scale follows from the history as it is
};

// scale = the largest power of two with scale * a <= largest / 2^margin, where a is the largest amax of the history (or
// with `most_recent` its newest), or 1 where a is 0; without a history a is the amax itself. Every amax becomes 0.
//   Where an amax is not finite, or `update` says that the step was skipped, history and scale stay as they are.
//   Without a history, an amax that is not finite makes the scale NaN, and so all that is computed with it.
struct UpdateScales {
  Scales scales;
  const UpdateScalars* update = nullptr;
  int margin = 0;
  bool most_recent = false;
  Remember remember = Remember::as_newest;
};
MEGALITH_OP(update_scales, UpdateScales)

}  // namespace megalith::ops
