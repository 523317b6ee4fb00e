#include "core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/cuda_runtime.h"
#include "core/error.h"

namespace megalith {

namespace {

struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

// Room is taken now: a memory file system that is full would end the process at the first touch.
void take_room(int file, const std::filesystem::path& path, int64_t bytes) {
  struct stat info {};
  if (::fstat(file, &info) != 0) io_error_errno(fmt::format("cannot stat {}", path.string()));
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    fail(ErrorKind::io, "{} is not a file of this user", path.string());
  if (::ftruncate(file, bytes) != 0) io_error_errno(fmt::format("cannot resize {}", path.string()));
  const int status = ::posix_fallocate(file, 0, bytes);
  if (status != 0) {
    ::unlink(path.c_str());
    errno = status;
    io_error_errno(fmt::format("no room for {} bytes in {}", bytes, path.string()));
  }
}

std::byte* map(const std::filesystem::path& path, int64_t bytes) {
  Descriptor file;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (!path.empty()) {
    file.value = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file.value < 0) io_error_errno(fmt::format("cannot create {}", path.string()));
    take_room(file.value, path, bytes);
    flags = MAP_SHARED;
  }
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, flags, file.value, 0);
  if (memory == MAP_FAILED) io_error_errno(fmt::format("cannot map {} bytes of {}", bytes, path.string()));
  return static_cast<std::byte*>(memory);
}

}  // namespace

SharedMemory::SharedMemory(const std::filesystem::path& path, int64_t bytes, Device device)
    : path_(path), bytes_(bytes), device_(device), data_(map(path, bytes)) {
  if (device_ == Device::cuda) cuda::pin_memory(data_, bytes_);
}

SharedMemory::~SharedMemory() {
  if (device_ == Device::cuda) cuda::unpin_memory(data_);
  ::munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace megalith
