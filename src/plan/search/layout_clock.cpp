#include "plan/search/layout_clock.h"

#include "config/derived.h"
#include "plan/run_request.h"
#include "plan/search/simulated_step.h"

namespace megalith::plan {

LayoutClock::LayoutClock(const SearchRequest& request)
    : request_(request),
      padded_(config::padded_vocab(request.vocabulary, request.run.model.make_vocab_size_divisible_by)) {}

RunFeatures LayoutClock::features_of(const Candidate& candidate) const {
  return plan::features_of(request_.run, padded_, request_.cluster, candidate);
}

OwnRates LayoutClock::own_rates() const {
  return {.rates = request_.rates, .measured_on = request_.rates_of, .constants = request_.constants};
}

const OwnTimes& LayoutClock::times_of(const Candidate& candidate, const RunFeatures& run) {
  const std::array key{run.tensor, run.context, run.micro_batch, static_cast<int64_t>(run.recompute),
                       static_cast<int64_t>(run.sequence_parallel)};
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const engine::StageRequest stage =
      stage_request(with_candidate(request_.run, request_.cluster, candidate), request_.vocabulary);
  return known_.emplace(key, own_times(stage, run, own_rates())).first->second;
}

StepParts LayoutClock::with_update(const RunFeatures& run, StepParts parts) const {
  parts.optimizer = own_update_time(run, own_rates());
  parts.jitter = 0.0;
  parts.jitter = jitter_of(run, request_.constants, parts.total());
  return parts;
}

StepParts LayoutClock::quick(const Candidate& candidate, const RunFeatures& run) {
  return with_update(run, step_time(run, request_.constants, times_of(candidate, run).blocks));
}

StepParts LayoutClock::exact(const Candidate& candidate, const RunFeatures& run) {
  return with_update(run, simulated_step(run, candidate.layout, request_.constants, times_of(candidate, run).blocks));
}

}  // namespace megalith::plan
