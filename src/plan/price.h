#pragma once

#include <cstdint>

namespace megalith::plan {

// What a run costs beside its steps; docs/planning.md says where the defaults come from.
struct Circumstances {
  double tokens = 0.0;           // to train on
  double price = 0.0;            // of an hour of one GPU
  double failures = 5.0;         // per 1000 days of a node
  double detection_s = 30.0;     // until a failure is noticed
  double restart_s = 120.0;      // until training goes on, without reading the checkpoint
  double node_write_gb_s = 2.0;  // that a node writes
  double file_system_gb_s = 64.0;
};

struct PricedRun {
  double step_s = 0.0;
  double tokens_of_step = 0.0;
  int64_t gpus = 1;
  int64_t nodes = 1;
  double checkpoint_bytes = 0.0;   // of the whole run
  double checkpoint_copy_s = 0.0;  // that training stands still: a rank's part to the host
};

struct Price {
  double stall_s = 0.0;  // of training, by a checkpoint
  double write_s = 0.0;  // of a checkpoint, beside training
  double read_s = 0.0;
  double between_failures_s = 0.0;  // infinity: none
  double interval_s = 0.0;          // between checkpoints: Young and Daly
  int64_t interval_steps = 1;
  double goodput = 1.0;
  double days = 0.0;
  double gpu_hours = 0.0;
  double cost = 0.0;
};

Price price_of(const PricedRun& run, const Circumstances& circumstances);

}  // namespace megalith::plan
