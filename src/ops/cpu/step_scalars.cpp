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

void sum(Stream&, const Sum& args) {
  double& total = *args.total.as<double>();
  if (!args.adds) total = 0.0;
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* x = args.x.as<T>();
    for (int64_t i = 0; i < args.x.elements(); ++i) total += widen(x[i]);
  });
}

}  // namespace megalith::ops::cpu
