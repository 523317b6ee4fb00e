#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/lineage.h"

namespace megalith::train {

// The text of an I/O error for the supervisor to act upon: the step that its roster names cannot be loaded, so that the
// next roster must name an earlier one.
std::string why_not_from(const checkpoint::Lineage& lineage, const std::string& reason);

// Which step that was, GenerationStart::kAnew where the run could not begin anew; nothing for any other message.
std::optional<int64_t> step_not_loaded(std::string_view message);

}  // namespace megalith::train
