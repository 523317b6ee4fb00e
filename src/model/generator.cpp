#include "model/generator.h"

#include "ops/attention.h"

namespace megalith::model {

Generator::Generator(const ModelConfig& config, const parallel::ParameterStore& store, Stream& stream, Arena& cache,
                     int64_t max_length)
    : config_(config), rope_(make_rope_table(config, stream, cache)), embedding_(config, store), head_(config, store) {
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    blocks_.emplace_back(config, store, rope_, layer);
    cache_.keys.push_back(cache.allocate("cache.keys", config.compute, {max_length, config.kv_width()}));
    cache_.values.push_back(cache.allocate("cache.values", config.compute, {max_length, config.kv_width()}));
  }
}

void Generator::feed(Context context, Tensor ids, Tensor logits) {
  context.cache = &cache_;
  const ArenaScope scope(context.scratch);
  const Shape shape{context.tokens(), config_.hidden};
  Tensor x = context.scratch.allocate("residual", config_.compute, shape);
  Tensor y = context.scratch.allocate("residual", config_.compute, shape);
  embedding_.forward(context, ids, x);
  for (const Block& block : blocks_) {
    const ArenaScope layer_scope(context.scratch);
    const Block::Saved saved = block.allocate_saved(
        context.scratch, {.batch = 1, .length = context.length, .rows = context.length}, Recompute::none);
    block.forward(context, x, y, saved);
    std::swap(x, y);
  }
  head_.logits(context, x.slice_rows(context.tokens() - 1, context.tokens()), logits);
}

}  // namespace megalith::model
