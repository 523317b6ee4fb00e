#include "ops/cuda/update/step_scalars_launch.h"

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

constexpr int kSumThreads = 1024;

// One block: the order of the additions depends on nothing but the number of elements.
__global__ void sum_kernel(const float* x, int64_t elements, double* total, bool adds) {
  __shared__ double partial[kSumThreads];
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < elements; i += kSumThreads) sum += static_cast<double>(x[i]);
  partial[threadIdx.x] = sum;
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *total = (adds ? *total : 0.0) + partial[0];
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

void launch_sum(void* stream, const float* x, int64_t elements, double* total, bool adds) {
  sum_kernel<<<1, kSumThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, elements, total, adds);
}

}  // namespace megalith::ops::cuda
