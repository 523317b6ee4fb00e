#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/process/failpoint.h"

namespace megalith {

namespace {
int open_or_throw(const std::filesystem::path& path, int flags, const char* purpose, mode_t mode = 0) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) io_error_errno(fmt::format("cannot {} {}", purpose, path.string()));
  return fd;
}

// What is read has a size and an end. A FIFO would wait for somebody to write, a device may go on for ever.
void refuse_special_file(const File& file) {
  struct stat info {};
  if (::fstat(file.descriptor(), &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return;
  user_error("{} is a {}, where a file is expected", file.path().string(), S_ISFIFO(info.st_mode) ? "FIFO" : "device");
}
}  // namespace

File File::open_for_reading(const std::filesystem::path& path) {
  File file(path, open_or_throw(path, O_RDONLY | O_NONBLOCK, "open"));  // files are never waited for
  refuse_special_file(file);
  return file;
}

File File::create_new(const std::filesystem::path& path) {
  return {path, open_or_throw(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, "create", 0666)};
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

void File::truncate(int64_t size) {
  if (::ftruncate(fd_, size) != 0) io_error_errno(fmt::format("cannot cut {}", path_.string()));
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

int64_t size_if_there(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? int64_t{info.st_size} : int64_t{-1};
}

void remove_if_there(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) io_error_errno(fmt::format("cannot remove {}", path.string()));
}

File open_part_file(const std::filesystem::path& path) {
  File file = File::open_for_appending(path);
  file.truncate(0);
  return file;
}

void rename_over(const std::filesystem::path& from, const std::filesystem::path& to) {
  pass_failpoint("file.rename");
  if (::rename(from.c_str(), to.c_str()) != 0) {
    io_error_errno(fmt::format("cannot rename {} to {}", from.string(), to.string()));
  }
}

void publish(const std::filesystem::path& part, const std::filesystem::path& to) {
  rename_over(part, to);
  sync_directory(to.parent_path());
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  replace_file_through(std::filesystem::path(path) += ".part", path, content);
}

void replace_file_through(const std::filesystem::path& part, const std::filesystem::path& path,
                          std::string_view content) {
  ::unlink(part.c_str());  // it may be a link to something else
  File file = File::create_new(part);
  try {
    file.write(content);
    file.sync();
    publish(part, path);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
}

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path target = directory.empty() ? std::filesystem::path(".") : directory;
  const int fd = ::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) io_error_errno(fmt::format("cannot open directory {}", target.string()));
  const int status = ::fsync(fd);
  ::close(fd);
  if (status != 0) io_error_errno(fmt::format("cannot sync directory {}", target.string()));
}

namespace {
void make_directory_with(const std::filesystem::path& directory, mode_t mode) {
  std::error_code status;
  if (directory.has_parent_path()) std::filesystem::create_directories(directory.parent_path(), status);
  if (::mkdir(directory.c_str(), mode) != 0 && errno != EEXIST) {
    io_error_errno(fmt::format("cannot create directory {}", directory.string()));
  }
  if (!std::filesystem::is_directory(directory, status))
    user_error("{} exists and is not a directory", directory.string());
}
}  // namespace

void make_directory(const std::filesystem::path& directory) {
  make_directory_with(directory, 0777);
}

void make_parent_directory(const std::filesystem::path& file) {
  if (file.has_parent_path()) make_directory(file.parent_path());
}

void make_private_directory(const std::filesystem::path& directory) {
  make_directory_with(directory, 0700);
}

}  // namespace megalith
