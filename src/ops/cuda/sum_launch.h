#pragma once

#include <cstdint>

namespace megalith::ops::cuda {

void launch_sum(void* stream, const float* x, int64_t elements, double* total, bool adds);

}  // namespace megalith::ops::cuda
