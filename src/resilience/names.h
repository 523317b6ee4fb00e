#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace megalith::resilience {

// The words of an enum, in the order of its values.
template <class Enum, size_t kCount>
constexpr const char* word_of(const std::array<const char*, kCount>& words, Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < kCount ? words[index] : "?";
}

template <class Enum, size_t kCount>
std::optional<Enum> value_of(const std::array<const char*, kCount>& words, std::string_view word) {
  for (size_t index = 0; index < kCount; ++index) {
    if (word == words[index]) return static_cast<Enum>(index);
  }
  return std::nullopt;
}

}  // namespace megalith::resilience
