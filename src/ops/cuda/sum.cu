#include "ops/cuda/sum_launch.h"

namespace megalith::ops::cuda {

namespace {

constexpr int kThreads = 1024;

// One block: the order of the additions depends on nothing but the number of elements.
__global__ void sum_kernel(const float* x, int64_t elements, double* total, bool adds) {
  __shared__ double partial[kThreads];
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < elements; i += kThreads) sum += static_cast<double>(x[i]);
  partial[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *total = (adds ? *total : 0.0) + partial[0];
}

}  // namespace

void launch_sum(void* stream, const float* x, int64_t elements, double* total, bool adds) {
  sum_kernel<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, elements, total, adds);
}

}  // namespace megalith::ops::cuda
