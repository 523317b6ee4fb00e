#pragma once

#include <array>
#include <map>
#include <mutex>

#include "plan/search/search.h"

namespace megalith::plan {

// What a step of any layout of a run takes. The operations of a micro batch are rehearsed and priced once for each
// shape that layouts share: tensor and context size, micro batch and recompute.
class LayoutClock {
 public:
  // `request` must outlive the clock.
  explicit LayoutClock(const SearchRequest& request);

  RunFeatures features_of(const Candidate& candidate) const;
  // May be called by several threads at once.
  const OwnTimes& times_of(const Candidate& candidate, const RunFeatures& run);
  // In closed form.
  StepParts quick(const Candidate& candidate, const RunFeatures& run);
  // With a simulated pipeline.
  StepParts exact(const Candidate& candidate, const RunFeatures& run);

 private:
  OwnRates own_rates() const;
  StepParts with_update(const RunFeatures& run, StepParts parts) const;

  const SearchRequest& request_;
  int64_t padded_;
  std::mutex mutex_;
  std::map<std::array<int64_t, 5>, OwnTimes> known_;
};

}  // namespace megalith::plan
