#pragma once

#include <string>

#include "comm/communicator.h"

namespace megalith::train {

// What member `teller` of the group says, on every member. `room`: memory of the group's device, i32, that nobody else
// uses meanwhile. The host waits.
std::string tell(comm::Communicator& group, Stream& stream, const Tensor& room, const std::string& text, int teller);

}  // namespace megalith::train
