#pragma once

#include <string>

namespace megalith::train {

// Asks the run to end at the next step boundary: a stop signal (core/stop_signals.h), the launcher, or a time limit.
class StopRequest {
 public:
  // From here on a stop saves. time_limit in seconds since then; 0: none.
  explicit StopRequest(double time_limit);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Empty while the run may go on; else why it should end.
  std::string reason() const;

 private:
  double deadline_;
  bool took_signals_;  // nobody had before: not the program, but a test
};

}  // namespace megalith::train
