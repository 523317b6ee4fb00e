#pragma once

#include "plan/step_time/layer_time.h"

namespace megalith::plan {

// Exposed tensor- and context-parallel calls of a layer, in the fields of that name. `attention`: its compute, which
// hides the ring's messages.
BothPasses exposed_calls_of_layer(const RunFeatures& run, const Constants& constants, const BothPasses& attention);

// Of one message between stages.
double message_time(const RunFeatures& run, const Constants& constants);

// Data-parallel collectives of a step: of all gradients, and of all weights, of a rank with this many.
struct DataCalls {
  double reduce = 0.0;
  double gather = 0.0;
  double last_bucket = 0.0;
};
DataCalls data_calls(const RunFeatures& run, const Constants& constants, double weights);

}  // namespace megalith::plan
