#include "observe/logs/line_tail.h"

#include <sys/stat.h>

#include <algorithm>

#include "core/file.h"

namespace megalith::observe {

namespace {
constexpr int64_t kChunk = 1 << 20;
}

bool LineTail::poll(const Use& use) {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) return offset_ == 0;
  const bool replaced = offset_ > 0 && (now.st_ino != inode_ || now.st_size < offset_);
  inode_ = now.st_ino;
  if (replaced) {
    offset_ = 0;
    unfinished_.clear();
    return false;
  }
  const File file = File::open_for_reading(path_);
  std::string chunk;
  while (offset_ < now.st_size) {
    chunk.resize(static_cast<size_t>(std::min<int64_t>(kChunk, now.st_size - offset_)));
    file.read_at(offset_, std::as_writable_bytes(std::span(chunk)));
    offset_ += static_cast<int64_t>(chunk.size());
    size_t begin = 0;
    for (size_t end = chunk.find('\n'); end != std::string::npos; end = chunk.find('\n', begin)) {
      unfinished_.append(chunk, begin, end - begin);
      if (!unfinished_.empty()) use(unfinished_);
      unfinished_.clear();
      begin = end + 1;
    }
    unfinished_.append(chunk, begin);
  }
  return true;
}

void LineTail::finish(const Use& use) {
  if (!unfinished_.empty()) use(unfinished_);
  unfinished_.clear();
}

}  // namespace megalith::observe
