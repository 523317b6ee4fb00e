#include "parallel/schedule/data_parallel_actions.h"

#include <algorithm>

namespace megalith::parallel {

namespace {

class Decorator {
 public:
  Decorator(const Schedule& schedule, WeightLife life, const std::vector<int64_t>& chunks_of_buckets)
      : schedule_(schedule), life_(life), chunks_of_buckets_(chunks_of_buckets) {}

  Schedule make() {
    for (size_t i = 0; i < schedule_.size(); ++i) {
      const Action& action = schedule_[i];
      if (is_compute(action)) provide_weights(i);
      result_.push_back(action);
      if (ends_backward(action) && is_last_of_its_sum(i)) reduce_buckets_of(action);
    }
    if (life_ == WeightLife::use) release_all_but({});
    return std::move(result_);
  }

 private:
  // The weights for this use are there, those for the next are on their way.
  void provide_weights(size_t index) {
    if (life_ == WeightLife::run) return;
    std::vector<int64_t> wanted = {schedule_[index].chunk};
    const auto next =
        std::find_if(schedule_.begin() + static_cast<ptrdiff_t>(index), schedule_.end(),
                     [&](const Action& action) { return is_compute(action) && action.chunk != wanted.front(); });
    if (next != schedule_.end()) wanted.push_back(next->chunk);
    if (life_ == WeightLife::use) release_all_but(wanted);
    for (const int64_t chunk : wanted) {
      if (std::find(gathered_.begin(), gathered_.end(), chunk) != gathered_.end()) continue;
      result_.push_back({.kind = ActionKind::gather_weights, .chunk = chunk});
      gathered_.push_back(chunk);
    }
  }

  void release_all_but(const std::vector<int64_t>& wanted) {
    std::erase_if(gathered_, [&](int64_t chunk) {
      if (std::find(wanted.begin(), wanted.end(), chunk) != wanted.end()) return false;
      result_.push_back({.kind = ActionKind::release_weights, .chunk = chunk});
      return true;
    });
  }

  bool is_last_of_its_sum(size_t index) const {
    if (life_ == WeightLife::use) return true;
    return std::none_of(
        schedule_.begin() + static_cast<ptrdiff_t>(index) + 1, schedule_.end(),
        [&](const Action& later) { return ends_backward(later) && later.chunk == schedule_[index].chunk; });
  }

  void reduce_buckets_of(const Action& action) {
    const size_t backward = result_.size() - 1;
    for (size_t bucket = 0; bucket < chunks_of_buckets_.size(); ++bucket) {
      if (chunks_of_buckets_[bucket] != action.chunk) continue;
      result_[backward].reduces_buckets = action.kind == ActionKind::backward;
      result_.push_back({.kind = ActionKind::reduce_bucket,
                         .chunk = action.chunk,
                         .micro_batch = action.micro_batch,
                         .bucket = bucket});
    }
  }

  const Schedule& schedule_;
  WeightLife life_;
  const std::vector<int64_t>& chunks_of_buckets_;
  Schedule result_;
  std::vector<int64_t> gathered_;
};

}  // namespace

Schedule with_data_parallel(const Schedule& schedule, WeightLife life, const std::vector<int64_t>& chunks_of_buckets) {
  return Decorator(schedule, life, chunks_of_buckets).make();
}

}  // namespace megalith::parallel
