#pragma once

#include <cstdint>

namespace megalith::ops::cuda {

// The most that a block may have, static and dynamic.
inline int64_t shared_memory_limit() {
  int device = 0;
  int most = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return most;
}

// Lets a kernel that has `static_bytes` of its own be launched with `bytes` of dynamic shared memory; false where the
// device has less. What is asked of the driver does not depend on `bytes`, so that threads cannot disturb one another.
template <class Kernel>
bool reserve_shared_memory(Kernel* kernel, int64_t bytes, int64_t static_bytes) {
  const int64_t most = shared_memory_limit();
  if (bytes + static_bytes > most) return false;
  const cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most - static_bytes));
  if (status != cudaSuccess) cudaGetLastError();  // the refusal must not be taken for a failed launch
  return status == cudaSuccess;
}

}  // namespace megalith::ops::cuda
