#include "ops/cuda/scalars_launch.h"

namespace megalith::ops::cuda {

namespace {

__global__ void set_step_kernel(uint64_t* step, double* gradient_scale, uint64_t step_value, double scale_value) {
  *step = step_value;
  *gradient_scale = scale_value;
}

__global__ void set_number_kernel(double* number, double value) {
  *number = value;
}

__global__ void weigh_step_kernel(double* gradient_scale, const double* total_weight) {
  *gradient_scale = *total_weight > 0.0 ? 1.0 / *total_weight : 0.0;
}

__global__ void set_floats_kernel(float* to, float a, float b, float c) {
  to[0] = a;
  to[1] = b;
  to[2] = c;
}

}  // namespace

void launch_set_step(void* stream, uint64_t* step, double* gradient_scale, uint64_t step_value, double scale_value) {
  set_step_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(step, gradient_scale, step_value, scale_value);
}

void launch_set_number(void* stream, double* number, double value) {
  set_number_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(number, value);
}

void launch_weigh_step(void* stream, double* gradient_scale, const double* total_weight) {
  weigh_step_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(gradient_scale, total_weight);
}

void launch_set_floats(void* stream, float* to, float a, float b, float c) {
  set_floats_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(to, a, b, c);
}

}  // namespace megalith::ops::cuda
