#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace megalith::data {

// A whole file as read-only memory, shared through the page cache with the other processes of the machine.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace megalith::data
