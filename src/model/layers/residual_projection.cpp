#include "model/layers/residual_projection.h"

#include "ops/dropout.h"

namespace megalith::model {

ResidualProjection::ResidualProjection(const ModelConfig& config, const parallel::ParameterStore& store,
                                       const std::string& name, int64_t layer, DropoutSite site)
    : config_(config), layer_(layer), site_(site), linear_(store, name) {}

void ResidualProjection::forward(const Context& context, Tensor x, Tensor residual, Tensor y) const {
  if (!drops() && !context.tensor.is_divided()) {
    linear_.forward_onto(context, x, residual, y);
    return;
  }
  const ArenaScope scope(context.scratch);
  const Tensor partial = context.scratch.allocate("projected", config_.compute, {context.tokens(), config_.hidden});
  linear_.forward_partial(context, x, partial);
  const Tensor projected = context.tensor.reduce(context.stream, partial);
  ops::dropout_add(context.stream, {.x = projected, .residual = residual, .y = y, .dropout = dropout(context)});
}

Tensor ResidualProjection::backward_product(const Context& context, Tensor gradient) const {
  const bool must_copy = context.deferred != nullptr && !context.tensor.divides_tokens();
  Tensor d_projected = gradient;
  if (drops() || must_copy) {
    Arena& arena = context.tensor.divides_tokens() ? context.scratch : context.kept();
    d_projected = arena.allocate("d_projected", config_.compute, {context.rows(), config_.hidden});
    ops::dropout_add(context.stream, {.x = gradient, .y = d_projected, .dropout = dropout(context)});
    if (drops()) linear_.backward_bias(context, d_projected);
  }
  return context.tensor.gather(context.stream, context.kept(), d_projected);
}

}  // namespace megalith::model
