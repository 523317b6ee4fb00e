#include "data/prepare/publish.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/error.h"
#include "core/failpoint.h"

namespace megalith::data {

namespace {
// False if the file was renamed or removed since it was opened.
bool is_named(const File& file) {
  struct stat here {};
  struct stat there {};
  return ::fstat(file.descriptor(), &here) == 0 && ::stat(file.path().c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}
}  // namespace

File open_part_file(const std::filesystem::path& path) {
  File file = File::open_for_appending(path);
  truncate(file, 0);
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

namespace {
void publish_through(const std::filesystem::path& part, const std::filesystem::path& path, std::string_view text) {
  try {
    File file = open_part_file(part);
    file.write(text);
    file.sync();
    publish(part, path);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
}
}  // namespace

void publish_text(const std::filesystem::path& path, std::string_view text) {
  publish_through(std::filesystem::path(path) += ".part", path, text);
}

void publish_text_among_many(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path part = std::filesystem::path(path) += ".part";
  for (;;) {
    File file = File::open_for_appending(part);
    if (::flock(file.descriptor(), LOCK_EX) != 0) break;
    if (!is_named(file)) continue;  // whoever held it has published it
    truncate(file, 0);
    file.write(text);
    file.sync();
    publish(part, path);
    return;
  }
  // A file system without locks: a name of one's own, which a kill leaves behind.
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  publish_through(std::filesystem::path(path) += fmt::format(".{}.{}.part", host.data(), ::getpid()), path, text);
}

void remove_stale_part(const std::filesystem::path& path) {
  const std::filesystem::path part = std::filesystem::path(path) += ".part";
  if (size_if_there(part) < 0) return;
  const File file = File::open_for_appending(part);
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0 && is_named(file)) remove_if_there(part);
}

void truncate(const File& file, int64_t size) {
  if (::ftruncate(file.descriptor(), size) != 0) io_error_errno(fmt::format("cannot cut {}", file.path().string()));
}

void lock_or_refuse(const File& file) {
  const bool locked = ::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0;
  const bool no_locks_here = !locked && errno != EWOULDBLOCK;
  if (!(locked || no_locks_here) || !is_named(file)) {
    user_error("another process is at work on this output: it holds {}", file.path().string());
  }
}

void remove_if_there(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) io_error_errno(fmt::format("cannot remove {}", path.string()));
}

int64_t size_if_there(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? int64_t{info.st_size} : int64_t{-1};
}

void make_parent_directory(const std::filesystem::path& path) {
  if (!path.has_parent_path()) return;
  std::error_code status;
  std::filesystem::create_directories(path.parent_path(), status);
  if (status) fail(ErrorKind::io, "cannot create the folder {}: {}", path.parent_path().string(), status.message());
}

}  // namespace megalith::data
