#pragma once

#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "core/shadow.h"
#include "core/tensor.h"

namespace megalith {

// Named memory of a fixed size, handed out front to back. Exceeding it is an error that names the arena and the tensor.
// Fresh memory reads as zero. A shadow has addresses of its own, no memory and no limit: it measures its peak.
class Arena {
 public:
  static constexpr int64_t kAlignment = 256;

  Arena(std::string name, Device device, int64_t capacity);
  Arena(std::string name, Device device, Shadow shadow);
  // Another on the same device; a shadow where this is one.
  Arena beside(std::string name, int64_t capacity) const;

  Tensor allocate(std::string_view what, DType dtype, Shape shape);
  // Gives back everything allocated since `mark` was taken with used().
  void release_to(int64_t mark);

  // All of it, as bytes in units of four; not of a shadow.
  Tensor whole() const { return Tensor(base_, DType::i32, {capacity_ / size_of(DType::i32)}, device_); }

  const std::string& name() const { return name_; }
  Device device() const { return device_; }
  bool is_shadow() const { return is_shadow_; }
  int64_t capacity() const { return capacity_; }
  int64_t used() const { return used_; }
  int64_t peak() const { return peak_; }
  // Bytes that a tensor takes in an arena.
  static int64_t footprint(DType dtype, int64_t elements) { return round_up(elements * size_of(dtype), kAlignment); }

 private:
  struct Unmap {
    Device device;
    int64_t bytes;
    void operator()(std::byte* memory) const;
  };

  std::string name_;
  Device device_;
  int64_t capacity_;
  int64_t used_ = 0;
  int64_t peak_ = 0;
  bool is_shadow_ = false;
  std::unique_ptr<std::byte, Unmap> memory_;
  std::byte* base_ = nullptr;
};

// Scratch that lives as long as a scope.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.used()) {}
  ~ArenaScope() { arena_.release_to(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  int64_t mark_;
};

}  // namespace megalith
