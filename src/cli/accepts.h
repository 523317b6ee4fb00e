#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/choices.h"

// What an option accepts. Help shows it, and anything else is refused in the same words: "--workers must be at least 1,
// not 0". Give these to `check`, but those that make another text of the value, as_value_of and size_in_bytes, to
// `transform`.
namespace megalith::cli {

constexpr int64_t kMostThreads = 4096;

CLI::Validator at_least(int64_t least);
CLI::Validator between(int64_t least, int64_t most);
// Real numbers; infinity and NaN are none.
CLI::Validator at_least_real(double least);
CLI::Validator above(double bound);
CLI::Validator between_real(double least, double most);

CLI::Validator one_of(const std::vector<std::string>& names);
// 500MB, 8GiB, or plain bytes.
CLI::Validator size_in_bytes();

namespace detail {
CLI::Validator replace_names(std::vector<std::pair<std::string, int64_t>> values);
}

// The name of an enum's value.
template <class Enum>
CLI::Validator as_value_of(const std::vector<std::pair<std::string, Enum>>& names) {
  std::vector<std::pair<std::string, int64_t>> values;
  for (const auto& [name, value] : names) values.emplace_back(name, static_cast<int64_t>(value));
  return detail::replace_names(std::move(values));
}

// A word of a config key that is an enum (config/choices.h).
template <class Enum>
CLI::Validator as_word_of() {
  std::vector<std::pair<std::string, Enum>> names;
  for (const config::Word<Enum>& word : words_of(Enum{})) names.emplace_back(word.text, word.meaning);
  return as_value_of(names);
}

}  // namespace megalith::cli
