#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/run_config.h"
#include "config/scalar.h"

namespace megalith::config {

// A field that is an enum of choices.h.
struct Choice {
  void* value = nullptr;
  std::string_view (*word)(const void* value) = nullptr;
  bool (*assign)(void* value, std::string_view text) = nullptr;  // false: `text` is no word for it
  std::string (*words)() = nullptr;                              // "cpu, gpu, auto"
};

template <class E>
Choice choice(E* field) {
  return {.value = field,
          .word = [](const void* value) { return word_of(*static_cast<const E*>(value)); },
          .assign =
              [](void* value, std::string_view text) {
                for (const Word<E>& word : words_of(E{})) {
                  if (lower_case(word.text) != lower_case(text)) continue;
                  *static_cast<E*>(value) = word.meaning;
                  return true;
                }
                return false;
              },
          .words =
              [] {
                std::string text;
                for (const Word<E>& word : words_of(E{})) {
                  if (word.text != word_of(word.meaning)) continue;
                  text += (text.empty() ? "" : ", ") + std::string(word.text.empty() ? "null" : word.text);
                }
                return text;
              }};
}

// The numbers that a key takes, or each number of its list.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool without_low = false;  // above `low`, not equal to it
  bool without_high = false;
};
constexpr Range at_least(double low) {
  return {.low = low};
}
constexpr Range above(double low) {
  return {.low = low, .without_low = true};
}
constexpr Range between(double low, double high) {
  return {.low = low, .high = high};
}

using Field = std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*, std::vector<double>*,
                           std::vector<std::string>*, Choice>;

struct Key {
  std::string_view path;  // NeMo's name: model.optim.sched.warmup_steps
  Field field;
  std::string_view help;
  Range range = {};
};

// Every key that Megalith implements, once, in the order of printing. Parsing, type checks, printing, help and
// suggestions all read this list; a field of Run that is not in it cannot be set.
std::vector<Key> keys_of(Run& run);

// "a whole number", "true or false", "one of cpu, gpu, auto", ...
std::string type_name(const Field& field);
// What is wrong with the key's numbers: "must be at least 1"; empty: nothing.
std::vector<std::string> out_of_range(const Key& key);

// The value as YAML, one line; null for an empty string, which stands for "not set".
std::string value_text(const Field& field);

}  // namespace megalith::config
