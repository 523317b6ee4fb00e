#pragma once

#include "plan/step_time/layer_time.h"

namespace megalith::plan {

// Seconds of a step, by what they are spent on: they add up to it.
struct StepParts {
  double compute = 0.0;  // of the mean stage
  double recompute = 0.0;
  double tensor = 0.0;  // exposed calls, of each kind
  double context = 0.0;
  double imbalance = 0.0;  // what the slowest stage adds to the mean one
  double bubble = 0.0;
  double messages = 0.0;  // between stages
  double data = 0.0;
  double optimizer = 0.0;
  double host = 0.0;
  double jitter = 0.0;

  double total() const;
};

// What a micro batch takes: it depends on the sizes of tensor and context, the micro batch and recompute alone, so that
// thousands of layouts share a few hundred.
struct BlockTimes {
  BothPasses layer;
  BothPasses head;
  BothPasses embedding;
};
BlockTimes block_times(const RunFeatures& run, const Constants& constants);

// Of the rank that holds most.
double weights_of_rank(const RunFeatures& run);

// In closed form, of a run that layout_problem() has nothing to say of.
StepParts step_time(const RunFeatures& run, const Constants& constants);
StepParts step_time(const RunFeatures& run, const Constants& constants, const BlockTimes& blocks);
// Stragglers, the tails of collectives and congestion, on top of the other parts.
double jitter_of(const RunFeatures& run, const Constants& constants, double seconds);

}  // namespace megalith::plan
