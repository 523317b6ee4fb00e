#include "model/layers/residual_projection.h"

#include "ops/dropout.h"

namespace megalith::model {

ResidualProjection::ResidualProjection(const ModelConfig& config, const parallel::ParameterStore& store,
                                       const Precision& precision, const std::string& name, int64_t layer,
                                       DropoutSite site)
    : config_(config), layer_(layer), site_(site), linear_(store, precision, name) {}

void ResidualProjection::forward(const Context& context, const ops::Operand& x, Tensor residual, Tensor y) const {
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

ops::Operand ResidualProjection::backward_product(const Context& context, Tensor gradient) const {
  const OperandFormat& format = linear_.gradient();
  const bool divides_tokens = context.tensor.divides_tokens();
  const bool is_copied_later = format.is_scaled() || divides_tokens;
  Tensor d_projected = gradient;
  if (drops() || (context.deferred != nullptr && !is_copied_later)) {
    Arena& arena = is_copied_later ? context.scratch : context.kept();
    d_projected = arena.allocate("d_projected", config_.compute, {context.rows(), config_.hidden});
    ops::dropout_add(context.stream, {.x = gradient, .y = d_projected, .dropout = dropout(context)});
    if (drops()) linear_.backward_bias(context, d_projected);
  }
  const ops::Operand own =
      operand_of(context, "d_projected", format, d_projected, divides_tokens ? Sides::rows : Sides::both);
  return gather(context, format, own, Sides::both);
}

}  // namespace megalith::model
