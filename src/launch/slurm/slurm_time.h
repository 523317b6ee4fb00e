#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace megalith::launch {

// Seconds of a time as Slurm spells it: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes
// or days-hours:minutes:seconds. Nothing for other texts.
std::optional<int64_t> parse_slurm_time(std::string_view text);

}  // namespace megalith::launch
