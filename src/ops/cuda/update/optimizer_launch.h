#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

// UpdateTile and UpdateScalars of ops/optimizer.h, in the memory of the device. optimizer.cpp holds them to the same
// layout.
struct DeviceTile {
  void* weights;
  void* remainder;
  const void* gradient;
  void* exp_avg;
  void* exp_avg_sq;
  int32_t elements;
  int32_t parameter;
  float weight_decay;
};

struct DeviceScalars {
  float learning_rate;
  float bias_correction1;
  float bias_correction2;
  int32_t first_non_finite;
  double squared_norm;
  double gradient_norm;
  float gradient_factor;
  int32_t skip;
};

struct SetScalarsLaunch {
  DeviceScalars* scalars = nullptr;
  float learning_rate = 0.0f;
  float bias_correction1 = 0.0f;
  float bias_correction2 = 0.0f;
};
void launch_set_scalars(const SetScalarsLaunch& args, void* stream);

struct TilesLaunch {
  const DeviceTile* tiles = nullptr;
  int64_t count = 0;
  int64_t tile_elements = 0;  // the most that a tile has
  Element weights = Element::f32;
};

void launch_gradient_norm(const TilesLaunch& tiles, double* partials, DeviceScalars* scalars, void* stream);

struct ClipLaunch {
  DeviceScalars* scalars = nullptr;
  double max_norm = 0.0;
  double norm_epsilon = 0.0;
  bool skip_stays = false;
};
void launch_clip_gradients(const ClipLaunch& args, void* stream);

struct AdamWLaunch {
  TilesLaunch tiles;
  const DeviceScalars* scalars = nullptr;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double epsilon = 0.0;
};
void launch_adamw(const AdamWLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
