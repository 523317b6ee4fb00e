#include "core/device.h"

#include <algorithm>
#include <charconv>

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

bool runs_on(std::string_view compiled, int major, int minor) {
  while (!compiled.empty()) {
    const size_t end = std::min(compiled.find(';'), compiled.size());
    const std::string_view one = compiled.substr(0, end);
    compiled.remove_prefix(std::min(end + 1, compiled.size()));
    int number = 0;
    const char* last = std::from_chars(one.data(), one.data() + one.size(), number).ptr;
    const bool own_alone = last != one.data() + one.size();
    const bool same = number == major * 10 + minor;
    if (same || (!own_alone && number / 10 == major && number % 10 <= minor)) return true;
  }
  return false;
}

bool multiplies_fp8(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  constexpr int kAda = 89;
  if (!architecture.starts_with(kPrefix)) return false;
  architecture.remove_prefix(kPrefix.size());
  int number = 0;
  std::from_chars(architecture.data(), architecture.data() + architecture.size(), number);
  return number >= kAda;
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
