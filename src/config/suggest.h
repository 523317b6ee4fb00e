#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::config {

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
int64_t edit_distance(std::string_view a, std::string_view b);

// The one of `names` that the writer of `word` most likely meant: close in spelling, or begun by it.
std::optional<std::string> nearest_name(std::string_view word, const std::vector<std::string>& names);

// The known key that the writer of `path` most likely meant: close in spelling, or the same name in another section.
std::optional<std::string> nearest_key(std::string_view path);

}  // namespace megalith::config
