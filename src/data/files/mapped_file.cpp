#include "data/files/mapped_file.h"

#include <sys/mman.h>

#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace megalith::data {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const File file = File::open_for_reading(path);
  const auto size = static_cast<size_t>(file.size());
  if (size == 0) return;  // mmap refuses an empty range
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (memory == MAP_FAILED) io_error_errno(fmt::format("cannot map {}", path.string()));
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace megalith::data
