#include "data/download/http_answer.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>

#include "core/clock.h"

namespace megalith::data {

namespace {
std::optional<int64_t> read_count(std::string_view text) {
  int64_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || stop != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}
}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

void HttpAnswer::add(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = {};
    const size_t space = line.find(' ');
    if (space != std::string_view::npos) status = read_count(line.substr(space + 1, 3)).value_or(0);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "content-length") length = read_count(value);
  if (name == "content-range") read_range(value);
  if (name == "etag") etag = value;
  if (name == "retry-after") {
    const std::string text(value);
    const time_t date = ::curl_getdate(text.c_str(), nullptr);
    if (const auto seconds = read_count(value)) {
      retry_after = static_cast<double>(*seconds);
    } else if (date >= 0) {
      retry_after = std::max(0.0, static_cast<double>(date) - wall_seconds());
    }
  }
}

// "bytes 5-9/10" or "bytes */10".
void HttpAnswer::read_range(std::string_view value) {
  if (!value.starts_with("bytes ")) return;
  value.remove_prefix(6);
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return;
  total = read_count(value.substr(slash + 1));
  range_begin = read_count(value.substr(0, std::min(value.find('-'), slash)));
}

}  // namespace megalith::data
