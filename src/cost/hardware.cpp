#include "cost/hardware.h"

#include <algorithm>
#include <array>
#include <string>

namespace megalith::cost {
namespace {

constexpr auto kAccelerators = std::to_array<Accelerator>({
    {"a100", 312, std::nullopt},
    {"h100", 989, 1979},
    {"h200", 989, 1979},
    {"b200", 2250, 4500},
});

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// "h100" is a word of "nvidia h100 80gb hbm3", not of "gh1000".
bool has_word(const std::string& text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word_char(text[at - 1])) && (end == text.size() || !is_word_char(text[end]))) return true;
  }
  return false;
}

}  // namespace

const Accelerator* find_accelerator(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  // The PCIe A100 has the full peak; the PCIe and NVL variants of later cards do not.
  const bool slower = has_word(lower, "nvl") || (has_word(lower, "pcie") && !has_word(lower, "a100"));
  if (slower) return nullptr;
  for (const Accelerator& accelerator : kAccelerators) {
    if (has_word(lower, accelerator.name)) return &accelerator;
  }
  return nullptr;
}

}  // namespace megalith::cost
