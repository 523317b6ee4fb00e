#pragma once

#include <cstdint>

namespace megalith::ops::cuda {

void launch_set_step(void* stream, uint64_t* step, double* gradient_scale, uint64_t step_value, double scale_value);
void launch_set_number(void* stream, double* number, double value);
void launch_weigh_step(void* stream, double* gradient_scale, const double* total_weight);
void launch_sum(void* stream, const float* x, int64_t elements, double* total, bool adds);

}  // namespace megalith::ops::cuda
