#pragma once

#include <vector>

#include "data/batch.h"

namespace megalith::engine {

// The micro batches of a step, in memory of the caller.
class MicroBatches {
 public:
  MicroBatches(const std::vector<data::MicroBatch>& list) : first_(list.data()), count_(list.size()), stride_(1) {}
  // One that stands for as many: a rehearsal reads no tokens, and copies of them would be most of its time.
  MicroBatches(const data::MicroBatch& each, size_t count = 1) : first_(&each), count_(count), stride_(0) {}

  size_t size() const { return count_; }
  const data::MicroBatch& operator[](int64_t index) const { return first_[index * stride_]; }

 private:
  const data::MicroBatch* first_;
  size_t count_;
  int64_t stride_;
};

}  // namespace megalith::engine
