#pragma once

#include <cstdint>

// Copies from global into shared memory that pass by the registers, 16 bytes at a time. A thread waits for its own.

namespace megalith::ops::cuda {

// Zeros where it is not present.
__device__ inline void copy_async(uint4* to, const void* from, bool present = true) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(present ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits for all but the last kPending groups of copies.
template <int kPending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace megalith::ops::cuda
