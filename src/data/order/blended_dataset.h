#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/order/blend_order.h"
#include "data/order/dataset.h"
#include "data/order/index_cache.h"

namespace megalith::data {

// Samples of several datasets in Megatron's order (BlendOrder), dealt out as they are asked for: only a block of the
// blend is in memory. Samples are expected to be asked for more or less in order; a step back, or a start in the
// middle, goes on from the last row of `taken` counts before it, which is remembered or comes from the cache. Where the
// blend takes more of a dataset than was built for it, that dataset goes on in its own extended order.
class BlendedDataset : public Dataset {
 public:
  struct Options {
    std::vector<double> weights;  // normalised (blend.h)
    std::vector<int64_t> limits;  // none, or how many samples of each dataset make a round
    int64_t samples = 0;          // what size() says; the blend itself has no end
    std::shared_ptr<const IndexCache> cache;
  };

  // User error unless all datasets have one sequence length.
  BlendedDataset(std::vector<std::unique_ptr<Dataset>> datasets, Options options);

  const std::string& name() const override { return name_; }
  int64_t sequence_length() const override { return datasets_.front()->sequence_length(); }
  int64_t size() const override { return options_.samples; }
  void sample(int64_t index, std::span<int32_t> tokens) const override;

  // Where a sample comes from. Thread-safe.
  BlendEntry locate(int64_t index) const;
  const Dataset& dataset(int64_t number) const { return *datasets_[static_cast<size_t>(number)]; }

 private:
  static constexpr int64_t kBlock = 16384;

  void load_block(int64_t block) const;
  void move_to(int64_t position) const;
  bool move_by_cache(int64_t row) const;

  std::string name_;
  std::vector<std::unique_ptr<Dataset>> datasets_;
  Options options_;
  int64_t rows_every_;

  mutable std::mutex mutex_;
  mutable std::shared_ptr<const IndexFile> cached_rows_;
  mutable BlendOrder order_;
  mutable int64_t block_ = -1;
  mutable std::vector<BlendEntry> entries_;         // of the block
  mutable std::vector<std::vector<int64_t>> rows_;  // taken() at every rows_every_ samples, as far as known
};

}  // namespace megalith::data
