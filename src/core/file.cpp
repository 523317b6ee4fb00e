#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/failpoint.h"

namespace megalith {

namespace {
int open_or_throw(const std::filesystem::path& path, int flags, const char* purpose, mode_t mode = 0) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) io_error_errno(fmt::format("cannot {} {}", purpose, path.string()));
  return fd;
}
}  // namespace

File File::open_for_reading(const std::filesystem::path& path) {
  return {path, open_or_throw(path, O_RDONLY, "open")};
}

File File::create_new(const std::filesystem::path& path) {
  return {path, open_or_throw(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create", 0600)};
}

File File::open_for_appending(const std::filesystem::path& path) {
  return {path, open_or_throw(path, O_WRONLY | O_CREAT | O_APPEND, "append to", 0666)};
}

File::File(File&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

int64_t File::size() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) io_error_errno(fmt::format("cannot stat {}", path_.string()));
  return info.st_size;
}

void File::read_at(int64_t offset, std::span<std::byte> into) const {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd_, into.data() + done, into.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) io_error_errno(fmt::format("cannot read {}", path_.string()));
    if (got == 0) {
      data_error("{} is truncated: {} bytes wanted at offset {}, the file has {}", path_.string(), into.size(), offset,
                 size());
    }
    done += static_cast<size_t>(got);
  }
}

void File::write(std::span<const std::byte> bytes) {
  pass_failpoint("file.write");
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) io_error_errno(fmt::format("cannot write {}", path_.string()));
    done += static_cast<size_t>(put);
  }
}

void File::sync() {
  if (::fsync(fd_) != 0) io_error_errno(fmt::format("cannot sync {}", path_.string()));
}

void File::forget_cache() const {
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

std::string read_text(const std::filesystem::path& path) {
  const File file = File::open_for_reading(path);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path part = path;
  part += ".part";
  ::unlink(part.c_str());
  {
    File file = File::create_new(part);
    file.write(content);
    file.sync();
  }
  pass_failpoint("file.rename");
  if (::rename(part.c_str(), path.c_str()) != 0) io_error_errno(fmt::format("cannot rename to {}", path.string()));
  sync_directory(path.parent_path());
}

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path target = directory.empty() ? std::filesystem::path(".") : directory;
  const int fd = ::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) io_error_errno(fmt::format("cannot open directory {}", target.string()));
  const int status = ::fsync(fd);
  ::close(fd);
  if (status != 0) io_error_errno(fmt::format("cannot sync directory {}", target.string()));
}

void make_directory(const std::filesystem::path& directory) {
  std::error_code status;
  if (directory.has_parent_path()) std::filesystem::create_directories(directory.parent_path(), status);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    io_error_errno(fmt::format("cannot create directory {}", directory.string()));
  }
  if (!std::filesystem::is_directory(directory)) user_error("{} exists and is not a directory", directory.string());
}

}  // namespace megalith
