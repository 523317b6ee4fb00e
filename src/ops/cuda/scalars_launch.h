#pragma once

#include <cstdint>

namespace megalith::ops::cuda {

void launch_set_step(void* stream, uint64_t* step, double* gradient_scale, uint64_t step_value, double scale_value);
void launch_set_number(void* stream, double* number, double value);
void launch_weigh_step(void* stream, double* gradient_scale, const double* total_weight);
// Three floats that lie together.
void launch_set_floats(void* stream, float* to, float a, float b, float c);

}  // namespace megalith::ops::cuda
