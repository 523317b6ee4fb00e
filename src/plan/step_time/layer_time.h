#pragma once

#include "plan/step_time/constants.h"
#include "plan/step_time/run_features.h"

namespace megalith::plan {

// Seconds of one micro batch in one direction, by what they are spent on.
struct PassTime {
  double compute = 0.0;
  double recompute = 0.0;  // forward again; its calls count as calls
  double tensor = 0.0;     // exposed calls
  double context = 0.0;
  double host = 0.0;  // that the GPU waits for the host

  double total() const { return compute + recompute + tensor + context + host; }
  PassTime& operator+=(const PassTime& other);
};
PassTime operator*(double times, PassTime pass);

struct BothPasses {
  PassTime forward;
  PassTime backward;

  double total() const { return forward.total() + backward.total(); }
};

// What a rank spends on a layer; they depend on the sizes of tensor and context and on the micro batch alone.
BothPasses layer_time(const RunFeatures& run, const Constants& constants);
// The head and the loss, on the last stage.
BothPasses head_time(const RunFeatures& run, const Constants& constants);
BothPasses embedding_time(const RunFeatures& run, const Constants& constants);
// Casts of a rank's weights to fp8, once a step.
double weight_cast_time(const RunFeatures& run, const Constants& constants, double weights);

}  // namespace megalith::plan
