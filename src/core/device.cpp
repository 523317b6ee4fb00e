#include "core/device.h"

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

}  // namespace megalith
