#include "core/device.h"

#include "core/cuda_runtime.h"

namespace megalith {

void* acquire_device_memory(Device device, int64_t bytes, const std::string& owner) {
  return device == Device::cpu ? cpu::acquire_memory(bytes, owner) : cuda::acquire_memory(bytes, owner);
}

void release_device_memory(Device device, void* memory, int64_t bytes) noexcept {
  if (device == Device::cpu) {
    cpu::release_memory(memory, bytes);
  } else {
    cuda::release_memory(memory);
  }
}

StagingMemory::StagingMemory(Device device, int64_t bytes, const std::string& owner)
    : device_(device),
      bytes_(bytes),
      data_(static_cast<std::byte*>(device == Device::cpu ? cpu::acquire_memory(bytes, owner)
                                                          : cuda::acquire_pinned_memory(bytes, owner))) {}

StagingMemory::~StagingMemory() {
  if (device_ == Device::cpu) {
    cpu::release_memory(data_, bytes_);
  } else {
    cuda::release_pinned_memory(data_);
  }
}

}  // namespace megalith
