#pragma once

#include <string>

#include "checkpoint/lineage.h"

namespace megalith::train {

// The text of an I/O error: the step that a supervisor's roster names cannot be loaded, so that the next roster must
// name an earlier one.
std::string why_not_from(const checkpoint::Lineage& lineage, const std::string& reason);

}  // namespace megalith::train
