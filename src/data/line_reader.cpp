#include "data/line_reader.h"

#include <algorithm>

namespace megalith::data {

namespace {
constexpr int64_t kBlock = int64_t{1} << 20;
}

LineReader::LineReader(const std::filesystem::path& path) : file_(File::open_for_reading(path)), size_(file_.size()) {}

bool LineReader::refill() {
  const int64_t count = std::min(kBlock, size_ - read_at_);
  if (count == 0) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t kept = buffer_.size();
  buffer_.resize(kept + static_cast<size_t>(count));
  file_.read_at(read_at_, std::as_writable_bytes(std::span(buffer_).subspan(kept)));
  read_at_ += count;
  return true;
}

std::optional<std::string_view> LineReader::next() {
  size_t searched = 0;  // of the line so far: a long line is not searched twice
  for (;;) {
    const size_t end = buffer_.find('\n', begin_ + searched);
    if (end != std::string::npos) {
      const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      consumed_ += std::ssize(line) + 1;
      ++line_;
      return line;
    }
    searched = buffer_.size() - begin_;
    if (refill()) continue;
    if (searched == 0) return std::nullopt;
    const std::string_view line = std::string_view(buffer_).substr(begin_);
    begin_ = buffer_.size();
    consumed_ += std::ssize(line);
    ++line_;
    return line;
  }
}

}  // namespace megalith::data
