#include "launch/ranks/live_line.h"

#include <fmt/format.h>

#include <utility>

namespace megalith::launch {

namespace {
constexpr std::string_view kClearRest = "\x1b[K";
}  // namespace

void LiveLine::set(std::string text) {
  if (text.empty() && text_.empty()) return;
  text_ = std::move(text);
  fmt::print(terminal_, "\r{}{}", text_, kClearRest);
  std::fflush(terminal_);
}

void LiveLine::print(std::FILE* to, const std::string& line) {
  const std::string live = std::exchange(text_, {});
  if (!live.empty()) fmt::print(terminal_, "\r{}", kClearRest);
  std::fflush(terminal_);
  fmt::print(to, "{}\n", line);
  std::fflush(to);
  if (!live.empty()) set(live);
}

LineState shown_of(std::string_view written) {
  const size_t clear = written.rfind(kClearRest);
  if (clear == std::string_view::npos) return {written, false};
  const std::string_view behind = written.substr(clear + kClearRest.size());
  if (!behind.empty()) return {behind, false};
  const size_t begin = written.rfind('\r', clear);
  if (begin == std::string_view::npos) return {written, false};
  return {written.substr(begin + 1, clear - begin - 1), true};
}

}  // namespace megalith::launch
