#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace megalith::launch {

// JSON as YAML that people like to read: block style, members in their order, texts of several lines as they are. YAML
// 1.1 and 1.2 readers find the same values in it. User error for a text that is not UTF-8.
std::string to_yaml(const nlohmann::ordered_json& value);

}  // namespace megalith::launch
