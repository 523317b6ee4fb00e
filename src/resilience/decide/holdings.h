#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "resilience/messages.h"

namespace megalith::resilience {

// "memory 120 g3 0-3,7/8; persistent 100 g2 0-7/8": tier, step, generation, parts held, parts in all.
std::string to_text(std::span<const Holding> holdings);
// Nothing for anything else.
std::optional<std::vector<Holding>> parse_holdings(std::string_view text);

// The newest step of which all nodes together hold every part, as one generation wrote it; -1: none. `is_valid` says
// which of them may be loaded.
using IsValid = std::function<bool(const Holding&)>;
int64_t newest_covered_step(std::span<const std::vector<Holding>> nodes, const IsValid& is_valid);

}  // namespace megalith::resilience
