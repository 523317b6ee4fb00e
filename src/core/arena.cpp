#include "core/arena.h"

#include <atomic>

#include "core/device.h"

namespace megalith {

namespace {

// Aligned addresses, far from each other and from null, that belong to nobody.
std::byte* shadow_base() {
  constexpr uintptr_t kArenas = 1 << 16;
  constexpr int kDistance = 44;  // as a power of two: 16 TiB
  static std::atomic<uintptr_t> count{0};
  return reinterpret_cast<std::byte*>((count.fetch_add(1, std::memory_order_relaxed) % kArenas + 1) << kDistance);
}

}  // namespace

void Arena::Unmap::operator()(std::byte* memory) const {
  release_device_memory(device, memory, bytes);
}

Arena::Arena(std::string name, Device device, int64_t capacity)
    : name_(std::move(name)),
      device_(device),
      capacity_(round_up(capacity, kAlignment)),
      memory_(nullptr, Unmap{device, capacity_}) {
  if (capacity_ > 0) memory_.reset(static_cast<std::byte*>(acquire_device_memory(device, capacity_, name_)));
  base_ = memory_.get();
}

Arena::Arena(std::string name, Device device, Shadow)
    : name_(std::move(name)),
      device_(device),
      capacity_(std::numeric_limits<int64_t>::max()),
      is_shadow_(true),
      memory_(nullptr, Unmap{device, 0}),
      base_(shadow_base()) {}

Arena Arena::beside(std::string name, int64_t capacity) const {
  if (is_shadow_) return Arena(std::move(name), device_, Shadow{});
  return Arena(std::move(name), device_, capacity);
}

Tensor Arena::allocate(std::string_view what, DType dtype, Shape shape) {
  const int64_t bytes = footprint(dtype, shape.elements());
  MEGALITH_CHECK(bytes <= capacity_ - used_, "arena '{}' has {} of {} bytes left, '{}' {} needs {}", name_,
                 capacity_ - used_, capacity_, what, to_string(shape), bytes);
  Tensor tensor(base_ + used_, dtype, shape, device_);
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return tensor;
}

void Arena::release_to(int64_t mark) {
  MEGALITH_CHECK(0 <= mark && mark <= used_, "arena '{}': mark {} lies beyond {}", name_, mark, used_);
  used_ = mark;
}

}  // namespace megalith
