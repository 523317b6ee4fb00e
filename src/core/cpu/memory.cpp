#include <sys/mman.h>

#include "core/device.h"

namespace megalith::cpu {

void* acquire_memory(int64_t bytes, const std::string& owner) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) io_error_errno(fmt::format("cannot map {} bytes for arena '{}'", bytes, owner));
  madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return memory;
}

void release_memory(void* memory, int64_t bytes) noexcept {
  munmap(memory, static_cast<size_t>(bytes));
}

}  // namespace megalith::cpu
