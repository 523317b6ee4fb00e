#include "model/generator.h"

namespace megalith::model {

Generator::Generator(const ModelConfig& config, const parallel::ParameterStore& store, Stream& stream, Arena& cache,
                     const Limits& limits)
    : config_(config),
      limits_(limits),
      rope_(make_rope_table(config, stream, cache)),
      embedding_(config, store),
      head_(config, store) {
  const Precision precision(config.compute);
  const Shape shape{limits.sequences * limits.length, config.kv_width()};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    blocks_.emplace_back(config, store, precision, rope_, layer);
    cache_.keys.push_back(cache.allocate("cache.keys", config.compute, shape));
    cache_.values.push_back(cache.allocate("cache.values", config.compute, shape));
  }
}

void Generator::feed(Context context, int64_t sequence, Tensor ids, Tensor logits) {
  const ArenaScope scope(context.scratch);
  cache_.sequences = {{.first_row = sequence * limits_.length, .position = context.position_offset}};
  context.cache = &cache_;
  const Tensor x = run_blocks(context, ids);
  head_.logits(context, x.slice_rows(context.tokens() - 1, context.tokens()), logits);
}

void Generator::feed_each(Context context, std::span<const int64_t> sequences, std::span<const int32_t> positions,
                          Tensor ids, Tensor logits) {
  const ArenaScope scope(context.scratch);
  cache_.sequences.clear();
  for (size_t i = 0; i < sequences.size(); ++i) {
    cache_.sequences.push_back({.first_row = sequences[i] * limits_.length, .position = positions[i]});
  }
  context.cache = &cache_;
  head_.logits(context, run_blocks(context, ids), logits);
}

void Generator::judge(const Context& context, Tensor ids, const Targets& targets) {
  const ArenaScope scope(context.scratch);
  head_.evaluate(context, run_blocks(context, ids), targets);
}

Tensor Generator::run_blocks(const Context& context, Tensor ids) {
  const Shape shape{context.tokens(), config_.hidden};
  Tensor x = context.scratch.allocate("residual", config_.compute, shape);
  Tensor y = context.scratch.allocate("residual", config_.compute, shape);
  embedding_.forward(context, ids, x);
  for (const Block& block : blocks_) {
    const ArenaScope layer_scope(context.scratch);
    const Block::Saved saved = block.allocate_saved(
        context.scratch, {.batch = context.batch, .length = context.length, .rows = context.tokens()}, Recompute::none);
    block.forward(context, x, y, saved);
    std::swap(x, y);
  }
  return x;
}

}  // namespace megalith::model
