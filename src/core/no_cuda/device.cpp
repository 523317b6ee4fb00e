#include "core/device.h"

namespace megalith {

std::vector<Accelerator> find_accelerators() {
  return {};
}

namespace cuda {
void* acquire_memory(int64_t, const std::string& owner) {
  user_error("arena '{}' was asked for on a GPU, but this build of Megalith has no CUDA; use trainer.accelerator=cpu",
             owner);
}
void release_memory(void*) noexcept {}
}  // namespace cuda

}  // namespace megalith
