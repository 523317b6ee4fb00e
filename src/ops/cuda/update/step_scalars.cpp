#include "ops/step_scalars.h"

#include "ops/cuda/launch.h"
#include "ops/cuda/update/step_scalars_launch.h"

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

void sum(Stream& stream, const Sum& args) {
  launch_sum(stream.native(), args.x.as<float>(), args.x.elements(), args.total.as<double>(), args.adds);
  check_launch("sum", args.x);
}

}  // namespace megalith::ops::cuda
