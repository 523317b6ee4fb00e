#pragma once

#include "core/process/rank_status.h"
#include "resilience/messages.h"

namespace megalith::resilience {

// What a status page says, in the words of reports. `now`: monotonic seconds. Not when beats were last seen to grow.
PageReport page_report(const RankStatus& status, double now);

}  // namespace megalith::resilience
