#include "ops/sum.h"

#include "ops/cuda/check.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/sum_launch.h"

namespace megalith::ops::cuda {

void sum(Stream& stream, const Sum& args) {
  check_vector(args.x, "x", DType::f32, args.x.elements());
  check_vector(args.total, "total", DType::f64, 1);
  launch_sum(stream.native(), args.x.as<float>(), args.x.elements(), args.total.as<double>(), args.adds);
  check_launch("sum", args.x);
}

}  // namespace megalith::ops::cuda
