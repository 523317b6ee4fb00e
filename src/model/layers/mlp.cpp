#include "model/layers/mlp.h"

#include "model/parameters.h"
#include "ops/activation.h"

namespace megalith::model {

Mlp::Mlp(const ModelConfig& config, const parallel::ParameterStore& store, int64_t layer)
    : config_(config),
      norm_(config, store, layer_name(layer, "mlp.norm")),
      up_(store, layer_name(layer, config.swiglu ? "mlp.gate_up" : "mlp.up")),
      down_(config, store, layer_name(layer, "mlp.down"), layer, DropoutSite::mlp_output) {}

Mlp::Saved Mlp::allocate_saved(Arena& arena, const ActivationShape& shape, bool keep_recomputable) const {
  Saved saved{.statistics = norm_.allocate_statistics(arena, shape.rows)};
  if (keep_recomputable) saved.normed = arena.allocate("mlp.normed", config_.compute, {shape.rows, config_.hidden});
  saved.up = arena.allocate("mlp.up", config_.compute, {shape.tokens(), config_.up_width()});
  if (keep_recomputable)
    saved.activated = arena.allocate("mlp.activated", config_.compute, {shape.tokens(), config_.ffn});
  return saved;
}

void Mlp::forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const {
  const ArenaScope scope(context.scratch);
  const Tensor activated = saved.activated ? saved.activated : allocate_activated(context.scratch, context);
  {
    const ArenaScope inner(context.scratch);
    const Tensor rows = saved.normed ? saved.normed : norm_.allocate_rows(context.scratch, context);
    norm_.forward(context, input, rows, saved.statistics);
    const Tensor normed = context.tensor.gather(context.stream, context.scratch, rows);
    if (config_.swiglu) {
      up_.forward(context, normed, saved.up);
      activate(context, saved.up, activated);
    } else {
      up_.forward_gelu(context, normed, saved.up, activated);
    }
  }
  down_.forward(context, activated, input, output);
}

void Mlp::backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                   Tensor input_bias_gradient) const {
  const ArenaScope scope(context.scratch);
  {
    const ArenaScope inner(context.scratch);
    const Tensor d_product = down_.backward_product(context, gradient);
    Tensor activated = saved.activated;
    if (!activated) {
      activated = allocate_activated(context.kept(), context);
      activate(context, saved.up, activated);
    }
    down_.backward_weight(context, d_product, activated);
    // The activation is no longer needed, unless a later product reads it: its gradient takes its place.
    const Tensor d_activated = context.deferred != nullptr ? allocate_activated(context.scratch, context) : activated;
    down_.backward_input(context, d_product, d_activated);
    activate_backward(context, d_activated, saved.up);
  }
  const Tensor d_up = saved.up;
  {
    const ArenaScope inner(context.scratch);
    up_.backward_weight(context, d_up, norm_.output_again(context, input, saved.normed, saved.statistics));
  }
  const Tensor d_normed = norm_.allocate_tokens(context);
  up_.backward_input(context, d_up, d_normed);
  norm_.backward(context, context.tensor.reduce(context.stream, d_normed), input, saved.statistics, gradient, gradient,
                 input_bias_gradient);
}

Tensor Mlp::allocate_activated(Arena& arena, const Context& context) const {
  return arena.allocate("mlp.activated", config_.compute, {context.tokens(), config_.ffn});
}

void Mlp::activate(const Context& context, Tensor up, Tensor activated) const {
  if (config_.swiglu) {
    ops::swiglu_forward(context.stream, {.gate_up = up, .y = activated});
  } else {
    ops::gelu_forward(context.stream, {.x = up, .y = activated});
  }
}

void Mlp::activate_backward(const Context& context, Tensor d_activated, Tensor up) const {
  if (config_.swiglu) {
    ops::swiglu_backward(context.stream, {.dy = d_activated, .gate_up = up, .dgate_up = up});
    up_.backward_bias(context, up);
    return;
  }
  const ArenaScope scope(context.scratch);
  Tensor scratch;
  if (up_.bias_gradient()) {
    scratch = context.scratch.allocate("gelu.partial_sums", up_.bias_gradient().dtype,
                                       {ops::column_sum_scratch(up.rows(), up.cols())});
  }
  ops::gelu_backward(context.stream,
                     {.dy = d_activated, .x = up, .dx = up, .dbias = up_.bias_gradient(), .scratch = scratch});
}

}  // namespace megalith::model
