#include "core/arena.h"

#include "core/device.h"

namespace megalith {

void Arena::Unmap::operator()(std::byte* memory) const {
  release_device_memory(device, memory, bytes);
}

Arena::Arena(std::string name, Device device, int64_t capacity)
    : name_(std::move(name)),
      device_(device),
      capacity_(round_up(capacity, kAlignment)),
      memory_(nullptr, Unmap{device, capacity_}) {
  if (capacity_ > 0) memory_.reset(static_cast<std::byte*>(acquire_device_memory(device, capacity_, name_)));
}

Tensor Arena::allocate(std::string_view what, DType dtype, Shape shape) {
  const int64_t bytes = footprint(dtype, shape.elements());
  MEGALITH_CHECK(used_ + bytes <= capacity_, "arena '{}' has {} of {} bytes left, '{}' {} needs {}", name_,
                 capacity_ - used_, capacity_, what, to_string(shape), bytes);
  Tensor tensor(memory_.get() + used_, dtype, shape, device_);
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return tensor;
}

void Arena::release_to(int64_t mark) {
  MEGALITH_CHECK(0 <= mark && mark <= used_, "arena '{}': mark {} lies beyond {}", name_, mark, used_);
  used_ = mark;
}

}  // namespace megalith
