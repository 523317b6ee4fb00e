#include "ops/sum.h"

#include "ops/cpu/check.h"

namespace megalith::ops::cpu {

void sum(Stream&, const Sum& args) {
  check_vector(args.x, "x", args.x.dtype, args.x.elements());
  check_vector(args.total, "total", DType::f64, 1);
  double& total = *args.total.as<double>();
  if (!args.adds) total = 0.0;
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* x = args.x.as<T>();
    for (int64_t i = 0; i < args.x.elements(); ++i) total += widen(x[i]);
  });
}

}  // namespace megalith::ops::cpu
