#include "ops/endless.h"

#include "ops/cuda/endless_launch.h"
#include "ops/cuda/launch.h"

namespace megalith::ops::cuda {

void compute_for_ever(Stream& stream) {
  launch_endless(stream.native());
  check_launch("compute_for_ever", {});
}

}  // namespace megalith::ops::cuda
