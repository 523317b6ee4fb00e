#pragma once

#include <string>

#include "comm/communicator.h"

namespace megalith::train {

// So much of a text travels at once.
constexpr int64_t kTellingUnits = 64;

// What member `teller` of the group says, on every member. `room`: memory of the group's device, i32, at least
// kTellingUnits, that nobody else uses meanwhile. The host waits.
std::string tell(comm::Communicator& group, Stream& stream, const Tensor& room, const std::string& text, int teller);

}  // namespace megalith::train
