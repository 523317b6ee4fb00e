#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace megalith {

struct Accelerator {
  std::string name;
  int64_t memory_bytes = 0;
  std::string architecture;  // "sm_90"
  std::string driver;        // version, "13.0"
};

// The GPUs that this build can see; empty without a driver or in a CPU-only build.
std::vector<Accelerator> find_accelerators();

// Throws a user error that says why where no GPU can be used: a build without CUDA, no driver, no device, or an
// architecture that no kernel was compiled for.
void require_accelerator();

// Whether kernels compiled for `compiled` ("80;90a") run on a GPU of compute capability major.minor: its own
// architecture, or a lower minor of the same major. Those with a letter run on their own alone.
bool runs_on(std::string_view compiled, int major, int minor);

// Whether GPUs of an architecture ("sm_90") multiply fp8: from compute capability 8.9 on.
bool multiplies_fp8(std::string_view architecture);

// Bytes of the current GPU in use, by whomever, and in all.
struct DeviceMemory {
  int64_t used = 0;
  int64_t total = 0;
};
DeviceMemory device_memory();

// Zeroed memory for an arena; `owner` is named in the error when there is not enough.
void* acquire_device_memory(Device device, int64_t bytes, const std::string& owner);
void release_device_memory(Device device, void* memory, int64_t bytes) noexcept;

// Host memory through which data goes to and from `device`: pinned for a GPU.
class StagingMemory {
 public:
  StagingMemory(Device device, int64_t bytes, const std::string& owner);
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  Device device_;
  int64_t bytes_;
  std::byte* data_;
};

namespace cpu {
void* acquire_memory(int64_t bytes, const std::string& owner);
void release_memory(void* memory, int64_t bytes) noexcept;
}  // namespace cpu

}  // namespace megalith
