#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::observe {

// Lines of UTF-8 text in at most `columns` columns each, cut between words. What is longer goes on below the last
// column of a table (what follows two blanks), or two blanks in. A word that is longer than a line stays whole.
std::string wrap_lines(std::string_view text, int64_t columns);

}  // namespace megalith::observe
