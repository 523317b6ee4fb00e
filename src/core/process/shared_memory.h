#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "core/tensor.h"

namespace megalith {

// Host memory to and from which `device` copies by itself (pinned for a GPU). As a file in a memory file system it
// outlives the process.
class SharedMemory {
 public:
  // An empty path: memory of this process alone. A file that is there is taken over. Throws an I/O error where there is
  // no room.
  SharedMemory(const std::filesystem::path& path, int64_t bytes, Device device);
  // Leaves the file.
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::span<std::byte> bytes() const { return {data_, static_cast<size_t>(bytes_)}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int64_t bytes_;
  Device device_;
  std::byte* data_ = nullptr;
};

}  // namespace megalith
