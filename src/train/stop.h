#pragma once

#include <string>

#include "core/process/status_page.h"

namespace megalith::train {

// Asks the run to end at the next step boundary: a stop signal (core/process/stop_signals.h), the launcher, a monitor
// by way of the rank's status page, or a time limit.
class StopRequest {
 public:
  // From here on a stop saves. time_limit in seconds since then; 0: none.
  StopRequest(double time_limit, const StatusPage& page);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Empty while the run may go on; else why it should end.
  std::string reason() const;

 private:
  double deadline_;
  const StatusPage& page_;
  bool took_signals_;  // nobody had before: not the program, but a test
};

}  // namespace megalith::train
