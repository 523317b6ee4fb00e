#pragma once

#include "engine/stage_program.h"
#include "plan/rates/rates.h"
#include "plan/step_time/step_time.h"

namespace megalith::plan {

// What operations take, by how that is known.
struct OperationTimes {
  double measured = 0.0;
  double interpolated = 0.0;
  double assumed = 0.0;
  // The same seconds by what bounds the operations.
  double gemms = 0.0;
  double attention = 0.0;
  double memory_bound = 0.0;

  double all() const { return measured + interpolated + assumed; }
};

// Rates were measured on `measured_on`; those of another GPU are scaled by what the data sheets and the fitted
// constants say of both.
struct OwnRates {
  const Rates& rates;
  const cost::Accelerator& measured_on;
  const Constants& constants;
};

// The passes of one micro batch, as a rehearsal lists their operations, and how much of that was measured. Of a tensor
// and a context group's rank, whatever the other sizes of the layout are.
struct OwnTimes {
  BlockTimes blocks;
  OperationTimes operations;
};
OwnTimes own_times(const engine::StageRequest& request, const RunFeatures& run, const OwnRates& own);

// Norm of the gradients and AdamW, on what a rank updates.
double own_update_time(const RunFeatures& run, const OwnRates& own);

}  // namespace megalith::plan
