#include "observe/logs/line_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace megalith::observe {

namespace {
// In windows, since a log may end all its lines with the same one of the two, and looking for the other goes far.
size_t find_line_end(std::string_view text) {
  constexpr size_t kWindow = 4096;
  for (size_t at = 0; at < text.size(); at += kWindow) {
    const std::string_view window = text.substr(at, kWindow);
    const size_t newline = window.find('\n');
    const size_t carriage_return = window.substr(0, newline).find('\r');
    const size_t end = std::min(newline, carriage_return);
    if (end != std::string_view::npos) return at + end;
  }
  return std::string_view::npos;
}
}  // namespace

LineReader::LineReader(const std::filesystem::path& path)
    : file_(File::open_for_reading(path)), buffer_(kLongestLine, '\0') {}

bool LineReader::refill() {
  if (at_end_) return false;
  if (begin_ == 0 && end_ == buffer_.size()) {
    if (!skipping_) ++overlong_;
    skipping_ = true;
    end_ = 0;
  }
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  ssize_t count = 0;
  do {
    count = ::read(file_.descriptor(), buffer_.data() + end_, buffer_.size() - end_);
  } while (count < 0 && errno == EINTR);
  if (count < 0) io_error_errno("cannot read " + file_.path().string());
  end_ += static_cast<size_t>(count);
  at_end_ = count == 0;
  return count > 0;
}

std::optional<std::string_view> LineReader::next() {
  while (true) {
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    const size_t length = find_line_end(held);
    if (length == std::string_view::npos) {
      if (refill()) continue;
      begin_ = end_;
      if (held.empty() || skipping_) return std::nullopt;
      return held;
    }
    begin_ += length + 1;
    if (skipping_) {
      skipping_ = false;
    } else if (length > 0) {
      return held.substr(0, length);
    }
  }
}

}  // namespace megalith::observe
