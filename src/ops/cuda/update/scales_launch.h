#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

struct ScaleSlots {
  int64_t count = 0;
  uint32_t* amax = nullptr;
  const float* largest = nullptr;
  float* scale = nullptr;
  float* inverse = nullptr;
  int64_t inverse_stride = 0;
};

// What findings say of a slot.
struct FindingCodes {
  int32_t none = 0;
  int32_t saturated = 0;
  int32_t not_finite = 0;
};
struct InspectAmaxLaunch {
  ScaleSlots slots;
  FindingCodes codes;
  int32_t* findings = nullptr;
  double* squared_norm = nullptr;
  double* saturations = nullptr;
};
void launch_inspect_amax(const InspectAmaxLaunch& args, void* stream);

struct UpdateScalesLaunch {
  ScaleSlots slots;
  Matrix history;  // (slots, length) f32; absent: none
  int64_t length = 0;
  const int32_t* skip = nullptr;  // null: not skipped
  int margin = 0;
  bool most_recent = false;
  bool shifts = false;        // the amax becomes a new first entry
  bool takes_newest = false;  // the amax is the first entry afterwards
};
void launch_update_scales(const UpdateScalesLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
