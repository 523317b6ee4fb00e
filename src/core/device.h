#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace megalith {

struct Accelerator {
  std::string name;
  int64_t memory_bytes = 0;
};

// The GPUs that this build can see; empty without a driver or in a CPU-only build.
std::vector<Accelerator> find_accelerators();

// Zeroed memory for an arena; `owner` is named in the error when there is not enough.
void* acquire_device_memory(Device device, int64_t bytes, const std::string& owner);
void release_device_memory(Device device, void* memory, int64_t bytes) noexcept;

namespace cpu {
void* acquire_memory(int64_t bytes, const std::string& owner);
void release_memory(void* memory, int64_t bytes) noexcept;
}  // namespace cpu

namespace cuda {
void* acquire_memory(int64_t bytes, const std::string& owner);
void release_memory(void* memory) noexcept;
}  // namespace cuda

}  // namespace megalith
