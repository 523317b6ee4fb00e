#include "ops/optimizer.h"

#include <cstddef>

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/update/optimizer_launch.h"

namespace megalith::ops::cuda {

namespace {

static_assert(sizeof(DeviceTile) == sizeof(UpdateTile) &&
              offsetof(DeviceTile, remainder) == offsetof(UpdateTile, remainder) &&
              offsetof(DeviceTile, gradient) == offsetof(UpdateTile, gradient) &&
              offsetof(DeviceTile, exp_avg_sq) == offsetof(UpdateTile, exp_avg_sq) &&
              offsetof(DeviceTile, elements) == offsetof(UpdateTile, elements) &&
              offsetof(DeviceTile, parameter) == offsetof(UpdateTile, parameter) &&
              offsetof(DeviceTile, weight_decay) == offsetof(UpdateTile, weight_decay));
static_assert(sizeof(DeviceScalars) == sizeof(UpdateScalars) &&
              offsetof(DeviceScalars, first_non_finite) == offsetof(UpdateScalars, first_non_finite) &&
              offsetof(DeviceScalars, squared_norm) == offsetof(UpdateScalars, squared_norm) &&
              offsetof(DeviceScalars, gradient_norm) == offsetof(UpdateScalars, gradient_norm) &&
              offsetof(DeviceScalars, gradient_factor) == offsetof(UpdateScalars, gradient_factor) &&
              offsetof(DeviceScalars, skip) == offsetof(UpdateScalars, skip));

TilesLaunch tiles_of(const UpdateTiles& tiles) {
  return {.tiles = reinterpret_cast<const DeviceTile*>(tiles.tiles),
          .count = tiles.count,
          .tile_elements = kUpdateTile,
          .weights = element_of(tiles.weights)};
}

}  // namespace

void set_update_scalars(Stream& stream, const SetUpdateScalars& args) {
  launch_set_scalars({.scalars = reinterpret_cast<DeviceScalars*>(args.scalars),
                      .learning_rate = args.learning_rate,
                      .bias_correction1 = args.bias_correction1,
                      .bias_correction2 = args.bias_correction2},
                     stream.native());
  check_launch("set_update_scalars", "scalars", 3);
}

void gradient_norm(Stream& stream, const GradientNorm& args) {
  launch_gradient_norm(tiles_of(args.tiles), args.partials.as<double>(), reinterpret_cast<DeviceScalars*>(args.scalars),
                       stream.native());
  check_launch("gradient_norm", "tiles", args.tiles.count);
}

void clip_gradients(Stream& stream, const ClipGradients& args) {
  launch_clip_gradients({.scalars = reinterpret_cast<DeviceScalars*>(args.scalars),
                         .max_norm = args.max_norm,
                         .norm_epsilon = kNormEpsilon,
                         .skip_stays = args.skip_stays},
                        stream.native());
  check_launch("clip_gradients", "norm", 1);
}

void adamw(Stream& stream, const AdamW& args) {
  launch_adamw({.tiles = tiles_of(args.tiles),
                .scalars = reinterpret_cast<const DeviceScalars*>(args.scalars),
                .beta1 = args.beta1,
                .beta2 = args.beta2,
                .epsilon = args.epsilon},
               stream.native());
  check_launch("adamw", "tiles", args.tiles.count);
}

}  // namespace megalith::ops::cuda
