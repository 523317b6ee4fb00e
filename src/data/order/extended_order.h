#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "data/order/gpt_index.h"

namespace megalith::data {

// A sample order without an end. The first block is the index built for the run's horizon, which holds B samples: the
// horizon, rounded up to whole epochs. Samples from k B on come from block k: an index over the same data for the same
// horizon with seed + k. So sample i is a function of the data, the seed and the horizon that the run started with; a
// run that is lengthened goes on in the order that it has, first through what is left of its last epoch.
class ExtendedOrder {
 public:
  // `again`: the index that was handed out for this seed turned out to be damaged.
  using Build = std::function<std::shared_ptr<const GptIndex>(uint32_t seed, bool again)>;
  struct BlockSample {
    std::shared_ptr<const GptIndex> index;
    int64_t sample;
  };

  ExtendedOrder(Build build, uint32_t seed);

  int64_t block_size() const { return block_size_; }
  const GptIndex& first_block() const { return *first_; }
  // Any sample from 0 on. Thread-safe. Builds a block when it is first entered, and keeps one beside the first.
  BlockSample locate(int64_t sample) const;
  // Builds the block of a sample again, unless that has happened since `damaged` was handed out.
  void rebuild(int64_t sample, const std::shared_ptr<const GptIndex>& damaged) const;

 private:
  Build build_;
  uint32_t seed_;
  int64_t block_size_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const GptIndex> first_;
  mutable int64_t later_block_ = 0;
  mutable std::shared_ptr<const GptIndex> later_;
};

}  // namespace megalith::data
