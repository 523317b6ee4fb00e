#include "core/device.h"

#include <cuda_runtime_api.h>

#include "core/cuda/check.h"
#include "core/cuda_runtime.h"

namespace megalith {

namespace {
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}
}  // namespace

std::vector<Accelerator> find_accelerators() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};  // no driver, or no device: a CPU machine
  int driver = 0;
  cudaDriverGetVersion(&driver);
  std::vector<Accelerator> found;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    if (!runs_on(MEGALITH_CUDA_ARCHITECTURES, properties.major, properties.minor)) continue;
    found.push_back({.name = properties.name,
                     .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
                     .architecture = fmt::format("sm_{}{}", properties.major, properties.minor),
                     .driver = version_text(driver)});
  }
  return found;
}

void require_accelerator() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    int runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) user_error("no NVIDIA driver is loaded on this machine; use trainer.accelerator=cpu");
    user_error("the NVIDIA driver supports CUDA {}, this build needs {}: update the driver", version_text(driver),
               version_text(runtime));
  }
  if (status != cudaSuccess || count == 0) {
    user_error("no GPU can be used here ({}); use trainer.accelerator=cpu", cudaGetErrorString(status));
  }
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, 0), "asking for the GPU's properties");
  if (!runs_on(MEGALITH_CUDA_ARCHITECTURES, properties.major, properties.minor)) {
    user_error(
        "this build has kernels for {}, the GPU ({}) is of architecture {}{}: build with "
        "-DMEGALITH_CUDA_ARCHITECTURES={}{}, or use trainer.accelerator=cpu",
        MEGALITH_CUDA_ARCHITECTURES, properties.name, properties.major, properties.minor, properties.major,
        properties.minor);
  }
}

DeviceMemory device_memory() {
  size_t free = 0;
  size_t total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return {.used = static_cast<int64_t>(total - free), .total = static_cast<int64_t>(total)};
}

namespace cuda {

void check(int status, const char* what) {
  if (status == cudaSuccess) return;
  fail(ErrorKind::device, "{}: {}", what, cudaGetErrorString(static_cast<cudaError_t>(status)));
}

void* acquire_memory(int64_t bytes, const std::string& owner) {
  void* memory = nullptr;
  cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    const DeviceMemory now = device_memory();
    fail(ErrorKind::device, "the GPU has {} of {} bytes free, arena '{}' needs {}", now.total - now.used, now.total,
         owner, bytes);
  }
  if (status == cudaSuccess) status = cudaMemset(memory, 0, static_cast<size_t>(bytes));
  // Streams of ours do not wait for the default stream, which sets the memory.
  if (status == cudaSuccess) status = cudaStreamSynchronize(nullptr);
  check(status, fmt::format("allocating {} bytes on the GPU for arena '{}'", bytes, owner).c_str());
  return memory;
}

void release_memory(void* memory) noexcept {
  cudaFree(memory);
}

void* acquire_pinned_memory(int64_t bytes, const std::string& owner) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, static_cast<size_t>(bytes)),
        fmt::format("pinning {} bytes of host memory for '{}'", bytes, owner).c_str());
  return memory;
}

void release_pinned_memory(void* memory) noexcept {
  cudaFreeHost(memory);
}

void pin_memory(void* memory, int64_t bytes) {
  check(cudaHostRegister(memory, static_cast<size_t>(bytes), cudaHostRegisterDefault),
        fmt::format("pinning {} bytes of host memory", bytes).c_str());
}

void unpin_memory(void* memory) noexcept {
  cudaHostUnregister(memory);
}

}  // namespace cuda

}  // namespace megalith
