#pragma once

#include <cstdint>
#include <optional>

#include "resilience/decide/phases.h"

namespace megalith::resilience {

// The next roster: nodes keep their ranks, spares take the places of those that are out and, where they suffice, of
// suspects. It continues from the newest step that all nodes together hold. Nothing where there are too few nodes.
std::optional<Roster> place_ranks(Turn& turn);

}  // namespace megalith::resilience
