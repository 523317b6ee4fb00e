#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace megalith::observe {

// Microseconds since the epoch of an ISO 8601 time: "2025-04-02T06:08:24.318726", with a space for the T, fewer or more
// digits of a second, and "Z" or an offset such as "+02:00". Without an offset it counts as UTC.
std::optional<int64_t> parse_timestamp(std::string_view text);

}  // namespace megalith::observe
