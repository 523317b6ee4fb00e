#pragma once

#include <gtest/gtest.h>

#include "optim/optimizer.h"
#include "parallel/layout_rank.h"

namespace megalith::optim::testing {

using namespace parallel::testing;

// The optimizer of one rank of a layout, on initialised weights, with exactly the memory that is promised.
class RankOptimizer {
 public:
  static constexpr double kRate = 0.01;

  explicit RankOptimizer(LayoutRank& rank)
      : masters_("masters", Device::cpu, rank.bytes.remainders),
        moments_("moments", Device::cpu, rank.bytes.moments),
        table_("table", Device::cpu, rank.bytes.update_table),
        optimizer({.optim = {.lr = kRate, .weight_decay = 0.1}, .clip_norm = 1.0}, rank.store, rank.stream,
                  {masters_, moments_, table_}) {
    EXPECT_EQ(masters_.used(), masters_.capacity());
    EXPECT_EQ(moments_.used(), moments_.capacity());
    EXPECT_EQ(table_.used(), table_.capacity());
    rank.store.initialise(rank.stream, 5);
    optimizer.initialise(rank.stream);
  }

  double update(LayoutRank& rank, int64_t step) {
    optimizer.measure(rank.stream, kRate, step + 1);
    rank.groups.world->all_reduce(rank.stream, optimizer.squared_norm()).wait(rank.stream);
    optimizer.apply(rank.stream);
    return static_cast<const ops::UpdateScalars*>(optimizer.scalars().data)->gradient_norm;
  }

 private:
  Arena masters_, moments_, table_;

 public:
  Optimizer optimizer;
};

}  // namespace megalith::optim::testing
