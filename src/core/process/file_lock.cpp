#include "core/process/file_lock.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/process/host.h"

namespace megalith {

namespace {
LockResult lock_with(const File& file, int operation) {
  int status = 0;
  do {
    status = ::flock(file.descriptor(), operation);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return LockResult::taken;
  return errno == EWOULDBLOCK ? LockResult::busy : LockResult::unsupported;
}

// False if the file was renamed or removed since it was opened.
bool is_named(const File& file) {
  struct stat here {};
  struct stat there {};
  return ::fstat(file.descriptor(), &here) == 0 && ::stat(file.path().c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}
}  // namespace

LockResult lock(const File& file, LockMode mode) {
  return lock_with(file, mode == LockMode::shared ? LOCK_SH : LOCK_EX);
}

LockResult try_lock(const File& file) {
  return lock_with(file, LOCK_EX | LOCK_NB);
}

void lock_or_refuse(const File& file) {
  if (try_lock(file) == LockResult::busy || !is_named(file)) {
    user_error("another process is at work on this output: it holds {}", file.path().string());
  }
}

void replace_file_among_many(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path part = std::filesystem::path(path) += ".part";
  for (;;) {
    File file = File::open_for_appending(part);
    if (lock(file, LockMode::exclusive) != LockResult::taken) break;
    if (!is_named(file)) continue;  // whoever held it has published it
    file.truncate(0);
    file.write(content);
    file.sync();
    publish(part, path);
    return;
  }
  // A file system without locks: a name of one's own, which a kill leaves behind.
  replace_file_through(std::filesystem::path(path) += fmt::format(".{}.{}.part", host_name(), ::getpid()), path,
                       content);
}

void remove_stale_part(const std::filesystem::path& path) {
  const std::filesystem::path part = std::filesystem::path(path) += ".part";
  if (size_if_there(part) < 0) return;
  const File file = File::open_for_appending(part);
  if (try_lock(file) == LockResult::taken && is_named(file)) remove_if_there(part);
}

}  // namespace megalith
