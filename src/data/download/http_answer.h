#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith::data {

// Without white space at both ends.
std::string_view trimmed(std::string_view text);
// ASCII letters only.
std::string lower(std::string_view text);

// What the headers of an HTTP answer say, of the last one after redirections.
struct HttpAnswer {
  long status = 0;
  std::optional<int64_t> length;
  std::optional<int64_t> range_begin;
  std::optional<int64_t> total;  // of the file of which a range was sent
  std::string etag;
  double retry_after = -1.0;  // seconds; -1: the server does not say

  void add(std::string_view line);

 private:
  void read_range(std::string_view value);
};

}  // namespace megalith::data
