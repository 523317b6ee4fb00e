#pragma once

#include <array>
#include <vector>

#include "model/layers/block.h"

namespace megalith::model {

// Blocks of a chunk, counted within it, that are treated alike: one whose activations are kept, or some of which only
// the first one's input is kept and backward makes the rest again.
struct RecomputeGroup {
  parallel::Interval blocks;
  bool is_recomputed = false;
  size_t saved = 0;  // among the kept ones
};
std::vector<RecomputeGroup> recompute_groups(const ModelConfig& config, int64_t blocks);

// The most blocks that are made again together; 0: none are.
int64_t largest_recomputed_group(const std::vector<RecomputeGroup>& groups);

// Where blocks are made again: one for all chunks of a rank.
class RecomputeRoom {
 public:
  // Room for at least so many blocks of the kind of `like`: scaled or not.
  void reserve(Arena& arena, const Block& like, const ActivationShape& shape, const ModelConfig& config,
               int64_t blocks);

  const Block::Saved& saved(int64_t index, const Block& block) const {
    return saved_[block.is_scaled() ? 1 : 0][static_cast<size_t>(index)];
  }
  // The residual stream behind block `index` of a group; for the last one, where nobody reads it any more.
  Tensor output(int64_t index) const { return outputs_[static_cast<size_t>(index)]; }

  // What lies here now: whoever needs it next may find it made already.
  struct Content {
    const void* chunk = nullptr;
    int64_t slot = 0;
    size_t group = 0;
    bool operator==(const Content&) const = default;
  };
  Content content = {};

 private:
  std::array<std::vector<Block::Saved>, 2> saved_;  // of blocks that are not scaled, and of those that are
  std::vector<Tensor> outputs_;
};

}  // namespace megalith::model
