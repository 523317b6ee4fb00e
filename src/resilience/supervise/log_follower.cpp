#include "resilience/supervise/log_follower.h"

#include <algorithm>

#include "core/error.h"
#include "core/file.h"

namespace megalith::resilience {

namespace {
constexpr int64_t kMostBytes = 1 << 20;  // at once
}

void LogFollower::skip() {
  read_ = std::max<int64_t>(0, size_if_there(path_));
}

void LogFollower::pump(std::FILE* to) {
  const int64_t bytes = std::min(size_if_there(path_) - read_, kMostBytes);
  if (bytes <= 0) return;
  std::string added(static_cast<size_t>(bytes), '\0');
  File::open_for_reading(path_).read_at(read_, std::as_writable_bytes(std::span(added)));
  read_ += bytes;
  begun_ += added;
  size_t begin = 0;
  for (size_t end = begun_.find('\n'); end != std::string::npos; end = begun_.find('\n', begin)) {
    const std::string line = prefix_ + begun_.substr(begin, end - begin + 1);
    std::fwrite(line.data(), 1, line.size(), to);
    begin = end + 1;
  }
  begun_.erase(0, begin);
  std::fflush(to);
}

}  // namespace megalith::resilience
