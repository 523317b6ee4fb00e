#pragma once

#include "parallel/schedule/schedule.h"

namespace megalith::parallel {

// The schedules of the stages of a pipeline, each made when it is asked for: what it computes and the transfers between
// stages. Found by running the orders on a clock on which a whole backward lasts as long as two forwards: what is made
// at one time travels at that time, in one send_receive of each rank concerned. A send_receive thus stands behind what
// was made up to its time and before what ends later: a compute waits only for earlier transfers, a transfer only for
// earlier computes, and no order of events in a real run can make ranks wait for each other in a circle.
class StageSchedules {
 public:
  // What each stage computes, in order.
  explicit StageSchedules(std::vector<Schedule> orders);

  Schedule of_stage(int64_t stage) const;
  std::vector<Schedule> all() const;

 private:
  struct Exchange {
    std::vector<Transfer> sends;
    std::vector<Transfer> receives;
  };

  // What the stage exchanges, by time; mostly empty.
  std::vector<Exchange> exchanges_of(int64_t stage) const;

  std::vector<Schedule> orders_;
  int64_t stages_;
  std::vector<std::vector<int64_t>> end_times_;  // of each action of each stage
};

// pipeline_schedules() and evaluation_schedules(), stage by stage.
StageSchedules pipeline_stages(const Layout& layout, int64_t micro_batches);
StageSchedules evaluation_stages(const Layout& layout, int64_t micro_batches);

}  // namespace megalith::parallel
