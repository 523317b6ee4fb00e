#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith::launch {

// A word of bash that stands for exactly this text. User error for a zero byte, which no word can hold.
std::string bash_quoted(std::string_view text);

// A command over several lines: the words up to `first_line` in one, then an option with its value, or one word, on
// each.
std::string bash_command(const std::vector<std::string>& words, size_t first_line);

}  // namespace megalith::launch
