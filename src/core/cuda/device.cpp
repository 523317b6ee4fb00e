#include "core/device.h"

#include <cuda_runtime_api.h>

namespace megalith {

std::vector<Accelerator> find_accelerators() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};  // no driver, or no device: a CPU machine
  std::vector<Accelerator> found;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    found.push_back({properties.name, static_cast<int64_t>(properties.totalGlobalMem)});
  }
  return found;
}

namespace cuda {

void* acquire_memory(int64_t bytes, const std::string& owner) {
  void* memory = nullptr;
  cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaSuccess) status = cudaMemset(memory, 0, static_cast<size_t>(bytes));
  if (status != cudaSuccess) {
    fail(ErrorKind::device, "cannot allocate {} bytes on the GPU for arena '{}': {}", bytes, owner,
         cudaGetErrorString(status));
  }
  return memory;
}

void release_memory(void* memory) noexcept {
  cudaFree(memory);
}

}  // namespace cuda

}  // namespace megalith
