#include "model/recompute.h"

#include <algorithm>

namespace megalith::model {

std::vector<RecomputeGroup> recompute_groups(const ModelConfig& config, int64_t blocks) {
  const bool full = config.recompute == Recompute::full;
  const int64_t per_group = full && !config.recompute_first_layers ? config.recompute_layers : 1;
  const int64_t recomputed = !full ? 0 : config.recompute_first_layers ? config.recompute_layers : blocks;
  std::vector<RecomputeGroup> groups;
  size_t kept = 0;
  for (int64_t begin = 0; begin < blocks; begin += per_group) {
    const bool is_recomputed = begin < recomputed;
    groups.push_back({.blocks = {begin, std::min(blocks, begin + per_group)},
                      .is_recomputed = is_recomputed,
                      .saved = is_recomputed ? 0 : kept++});
  }
  return groups;
}

int64_t largest_recomputed_group(const std::vector<RecomputeGroup>& groups) {
  int64_t largest = 0;
  for (const RecomputeGroup& group : groups) {
    if (group.is_recomputed) largest = std::max(largest, group.blocks.size());
  }
  return largest;
}

void RecomputeRoom::reserve(Arena& arena, const Block& like, const ActivationShape& shape, const ModelConfig& config,
                            int64_t blocks) {
  std::vector<Block::Saved>& saved = saved_[like.is_scaled() ? 1 : 0];
  while (std::ssize(saved) < blocks) {
    saved.push_back(like.allocate_saved(arena, shape, Recompute::none));
    if (saved.size() <= outputs_.size()) continue;
    outputs_.push_back(arena.allocate("recomputed", config.compute, {shape.rows, config.hidden}));
  }
}

}  // namespace megalith::model
