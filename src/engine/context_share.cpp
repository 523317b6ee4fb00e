#include "engine/context_share.h"

#include <numeric>

namespace megalith::engine {

using parallel::Half;
using parallel::Interval;

data::MicroBatch share_of(const data::MicroBatch& micro_batch, const parallel::ContextSplit& split) {
  data::MicroBatch share{.batch = 2 * micro_batch.batch, .length = split.block()};
  const auto take = [](const auto& whole, const Interval& tokens, auto& part) {
    if (whole.empty()) return;
    part.insert(part.end(), whole.begin() + tokens.begin, whole.begin() + tokens.end);
  };
  for (int64_t sample = 0; sample < micro_batch.batch; ++sample) {
    for (const Half half : {Half::front, Half::back}) {
      const Interval positions = positions_of(split, half);
      const Interval tokens = shifted(positions, sample * micro_batch.length);
      take(micro_batch.inputs, tokens, share.inputs);
      take(micro_batch.targets, tokens, share.targets);
      take(micro_batch.weights, tokens, share.weights);
      take(micro_batch.document_starts, tokens, share.document_starts);
      take(micro_batch.position_ids, tokens, share.position_ids);
      if (micro_batch.position_ids.empty()) {
        const size_t before = share.position_ids.size();
        share.position_ids.resize(before + static_cast<size_t>(positions.size()));
        std::iota(share.position_ids.begin() + static_cast<ptrdiff_t>(before), share.position_ids.end(),
                  static_cast<int32_t>(positions.begin));
      }
      share.sample_ids.push_back(micro_batch.sample_ids[static_cast<size_t>(sample)]);
      share.first_positions.push_back(static_cast<int32_t>(positions.begin));
    }
  }
  return share;
}

}  // namespace megalith::engine
