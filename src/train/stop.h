#pragma once

#include <string>

namespace megalith::train {

// Asks the run to end at the next step boundary: SIGTERM, SIGINT, SIGUSR1 (Slurm before the time is up), or a time
// limit. A second signal ends the process at once, as if nothing were installed.
class StopRequest {
 public:
  // time_limit in seconds since the process started training; 0: none.
  explicit StopRequest(double time_limit);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Empty while the run may go on; else why it should end.
  std::string reason() const;

 private:
  double deadline_;
};

}  // namespace megalith::train
