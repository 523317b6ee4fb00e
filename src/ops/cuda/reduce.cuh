#pragma once

#include <cstdint>

// Sums over a warp or a block, in an order that depends on nothing but the number of threads.

namespace megalith::ops::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

template <class V>
__device__ V warp_sum(V value) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2) value += __shfl_xor_sync(kAllLanes, value, lane);
  return value;
}

// Replaces each of kCount values by its sum over the block. `shared` belongs to this call alone until the block has
// come past one more barrier.
template <int kCount, class V>
__device__ void block_sums(V (&values)[kCount], V (*shared)[kWarp]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = warp_sum(values[i]);
    if (lane == 0) shared[i][warp] = values[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = warp_sum(lane < warps ? shared[i][lane] : V(0));
}

}  // namespace megalith::ops::cuda
