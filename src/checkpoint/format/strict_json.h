#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::checkpoint {

// JSON from files that may be damaged or hostile. Included by .cpp files only: nlohmann's header is heavy.

struct JsonLimits {
  int64_t max_bytes = 0;
  int64_t max_values = 0;  // bounds the memory that the parsed tree takes
  int max_depth = 6;
};

// Refuses with a data error that begins with `where`: bad syntax, duplicate keys, and anything beyond the limits.
nlohmann::json parse_strict_json(std::string_view text, const JsonLimits& limits, const std::string& where);

// Takes the fields of an object one by one; finish() refuses those that nobody took.
class StrictObject {
 public:
  StrictObject(const nlohmann::json& value, std::string where);

  bool has(const char* key) const { return object_.contains(key); }
  const nlohmann::json& take(const char* key);
  const nlohmann::json& take_array(const char* key);
  std::string take_string(const char* key);
  int64_t take_int(const char* key, int64_t min = 0, int64_t max = std::numeric_limits<int64_t>::max());
  std::vector<int64_t> take_ints(const char* key);
  void finish() const;

  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::vector<std::string> taken_;
};

}  // namespace megalith::checkpoint
