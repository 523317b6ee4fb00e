#include "ops/step_scalars.h"

namespace megalith::ops::cpu {

void set_step_scalars(Stream&, const SetStepScalars& args) {
  *args.scalars = args.values;
}

}  // namespace megalith::ops::cpu
