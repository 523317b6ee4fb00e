#include "core/process/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/thread_pool.h"

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

// What is in the pages stays. The kernel clears a page at its first touch, about as slowly as it copies one: on a
// single thread that takes half a minute for a hundred gigabytes. Kernels before 5.14 do it when a page is used.
void touch_pages(std::byte* memory, int64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr int64_t kPiece = int64_t{256} << 20;
  constexpr int kMostThreads = 8;
  ThreadPool pool(std::min(kMostThreads, available_cores()));
  pool.run((bytes + kPiece - 1) / kPiece, [&](int64_t piece) {
    const int64_t begin = piece * kPiece;
    ::madvise(memory + begin, static_cast<size_t>(std::min(kPiece, bytes - begin)), MADV_POPULATE_WRITE);
  });
#endif
}

}  // namespace

SharedMemory::SharedMemory(const std::filesystem::path& path, int64_t bytes, Device device)
    : path_(path), bytes_(bytes), device_(device), data_(map(path, bytes)) {
  touch_pages(data_, bytes_);
  if (device_ == Device::cuda) cuda::pin_memory(data_, bytes_);
}

SharedMemory::~SharedMemory() {
  if (device_ == Device::cuda) cuda::unpin_memory(data_);
  ::munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace megalith
