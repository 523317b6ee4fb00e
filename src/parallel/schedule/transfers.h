#pragma once

#include "parallel/schedule/schedule.h"

namespace megalith::parallel {

// Adds to what the stages of a pipeline compute the transfers between them. Found by running the orders on a clock on
// which a whole backward lasts as long as two forwards: what is made at one time travels at that time, in one
// send_receive of each rank concerned. A send_receive thus stands behind what was made up to its time and before what
// ends later: a compute waits only for earlier transfers, a transfer only for earlier computes, and no order of events
// in a real run can make ranks wait for each other in a circle.
std::vector<Schedule> with_transfers(const std::vector<Schedule>& orders);

}  // namespace megalith::parallel
