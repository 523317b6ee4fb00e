#include "ops/step_scalars.h"

namespace megalith::ops::cpu {

void set_step_scalars(Stream&, const SetStepScalars& args) {
  *args.scalars = args.values;
}

void set_number(Stream&, const SetNumber& args) {
  *args.number = args.value;
}

void weigh_step(Stream&, const WeighStep& args) {
  args.scalars->gradient_scale = *args.total_weight > 0.0 ? 1.0 / *args.total_weight : 0.0;
}

}  // namespace megalith::ops::cpu
