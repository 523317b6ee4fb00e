#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::data {

// Why a line gives no document.
enum class BadLine {
  not_json,
  invalid_utf8,
  control_character,
  bad_escape,
  missing_key,
  not_text,
  too_long,
  too_many_tokens,
  special_text,
  damaged_file,
};
constexpr int kBadLineKinds = 10;

std::string_view name_of(BadLine kind);

enum class OnError { fail, skip };

// What was left out: counts by reason, and where the first ones were.
class BadLines {
 public:
  static constexpr size_t kExamples = 3;  // of each reason

  // `place` is "file:line".
  void add(BadLine kind, std::string place);
  // Adds what was found behind this.
  void append(const BadLines& later);

  int64_t total() const;
  int64_t count(BadLine kind) const { return of(kind).count; }
  const std::vector<std::string>& examples(BadLine kind) const { return of(kind).examples; }

  nlohmann::json to_json() const;
  static BadLines from_json(const nlohmann::json& json);

 private:
  struct Kind {
    int64_t count = 0;
    std::vector<std::string> examples;
  };
  const Kind& of(BadLine kind) const { return kinds_[static_cast<size_t>(kind)]; }

  std::array<Kind, kBadLineKinds> kinds_;
};

}  // namespace megalith::data
