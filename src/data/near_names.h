#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith::data {

// The known names that someone who wrote `wanted` may have meant, best first: few edits away, or one begins the other.
std::vector<std::string> near_names(std::string_view wanted, const std::vector<std::string>& known, size_t most = 3);

}  // namespace megalith::data
