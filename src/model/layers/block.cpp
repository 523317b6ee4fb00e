#include "model/layers/block.h"

namespace megalith::model {

Block::Block(const ModelConfig& config, const parallel::ParameterStore& store, const Precision& precision,
             const RopeTable& rope, int64_t layer)
    : config_(config), attention_(config, store, precision, rope, layer), mlp_(config, store, precision, layer) {}

Block::Saved Block::allocate_saved(Arena& arena, const ActivationShape& shape, Recompute policy) const {
  const bool keep_recomputable = policy == Recompute::none;
  return {.attention = attention_.allocate_saved(arena, shape, keep_recomputable),
          .middle = arena.allocate("block.middle", config_.compute, {shape.rows, config_.hidden}),
          .mlp = mlp_.allocate_saved(arena, shape, keep_recomputable)};
}

void Block::forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const {
  if (context.casts_weights) {
    attention_.cast_weights(context);
    mlp_.cast_weights(context);
  }
  attention_.forward(context, input, saved.middle, saved.attention);
  mlp_.forward(context, saved.middle, output, saved.mlp);
}

void Block::backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                     Tensor input_bias_gradient) const {
  mlp_.backward(context, saved.middle, saved.mlp, gradient, attention_.output_bias_gradient());
  attention_.backward(context, input, saved.attention, gradient, input_bias_gradient);
}

}  // namespace megalith::model
