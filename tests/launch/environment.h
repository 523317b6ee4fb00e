#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/environment/environment.h"

namespace megalith::launch {

using Environment = std::map<std::string, std::string>;

// Environment variables that are not those of this process.
inline config::Lookup lookup_in(Environment environment) {
  return [environment = std::move(environment)](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace megalith::launch
