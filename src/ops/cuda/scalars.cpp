#include "ops/cuda/launch.h"
#include "ops/cuda/scalars_launch.h"
#include "ops/optimizer.h"
#include "ops/step_scalars.h"

namespace megalith::ops::cuda {

void set_step_scalars(Stream& stream, const SetStepScalars& args) {
  launch_set_step(stream.native(), &args.scalars->step, &args.scalars->gradient_scale, args.values.step,
                  args.values.gradient_scale);
  check_launch("set_step_scalars", {});
}

void set_number(Stream& stream, const SetNumber& args) {
  launch_set_number(stream.native(), args.number, args.value);
  check_launch("set_number", {});
}

void weigh_step(Stream& stream, const WeighStep& args) {
  launch_weigh_step(stream.native(), &args.scalars->gradient_scale, args.total_weight);
  check_launch("weigh_step", {});
}

void set_update_scalars(Stream& stream, const SetUpdateScalars& args) {
  static_assert(offsetof(UpdateScalars, bias_correction1) == offsetof(UpdateScalars, learning_rate) + sizeof(float) &&
                offsetof(UpdateScalars, bias_correction2) ==
                    offsetof(UpdateScalars, learning_rate) + 2 * sizeof(float));
  launch_set_floats(stream.native(), &args.scalars->learning_rate, args.learning_rate, args.bias_correction1,
                    args.bias_correction2);
  check_launch("set_update_scalars", {});
}

}  // namespace megalith::ops::cuda
