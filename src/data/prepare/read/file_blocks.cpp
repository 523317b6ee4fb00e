#include "data/prepare/read/file_blocks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/process/failpoint.h"

namespace megalith::data {

FileBlocks::FileBlocks(const std::filesystem::path& path, int64_t block_bytes)
    : file_(File::open_for_reading(path)), block_bytes_(block_bytes) {
  ::posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

size_t FileBlocks::read(std::span<char> into) {
  pass_failpoint("prepare.read");
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(file_.descriptor(), into.data() + done, into.size() - done, offset_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) io_error_errno(fmt::format("cannot read {} at byte {}", path().string(), offset_));
    if (got == 0) break;
    done += static_cast<size_t>(got);
    offset_ += got;
  }
  if (offset_ - forgotten_ >= 4 * block_bytes_) {
    ::posix_fadvise(file_.descriptor(), forgotten_, offset_ - forgotten_, POSIX_FADV_DONTNEED);
    forgotten_ = offset_;
  }
  return done;
}

std::span<const char> FileBlocks::next() {
  if (!block_) block_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(block_bytes_));
  const size_t count = read({block_.get(), static_cast<size_t>(block_bytes_)});
  return {block_.get(), count};
}

}  // namespace megalith::data
