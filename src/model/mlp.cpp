#include "model/mlp.h"

#include "model/parameters.h"
#include "ops/activation.h"

namespace megalith::model {

Mlp::Mlp(const ModelConfig& config, const parallel::ParameterStore& store, int64_t layer)
    : config_(config),
      layer_(layer),
      norm_(config, store, layer_name(layer, "mlp.norm")),
      up_(store, layer_name(layer, config.swiglu ? "mlp.gate_up" : "mlp.up")),
      down_(store, layer_name(layer, "mlp.down")) {}

Mlp::Saved Mlp::allocate_saved(Arena& arena, int64_t tokens, bool keep_recomputable) const {
  Saved saved{.statistics = norm_.allocate_statistics(arena, tokens)};
  if (keep_recomputable) saved.normed = arena.allocate("mlp.normed", config_.compute, {tokens, config_.hidden});
  saved.up = arena.allocate("mlp.up", config_.compute, {tokens, config_.up_width()});
  if (keep_recomputable) saved.activated = arena.allocate("mlp.activated", config_.compute, {tokens, config_.ffn});
  return saved;
}

void Mlp::forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const {
  const ArenaScope scope(context.scratch);
  const Tensor activated = saved.activated ? saved.activated : allocate_activated(context);
  {
    const ArenaScope inner(context.scratch);
    const Tensor normed = saved.normed ? saved.normed : norm_.allocate_output(context);
    norm_.forward(context, input, normed, saved.statistics);
    if (config_.swiglu) {
      up_.forward(context, normed, saved.up);
      activate(context, saved.up, activated);
    } else {
      up_.forward_gelu(context, normed, saved.up, activated);
    }
  }
  if (!drops_output()) {
    down_.forward_onto(context, activated, input, output);
    return;
  }
  const Tensor projected =
      context.scratch.allocate("mlp.projected", config_.compute, {context.tokens(), config_.hidden});
  down_.forward(context, activated, projected);
  ops::dropout_add(context.stream,
                   {.x = projected,
                    .residual = input,
                    .y = output,
                    .dropout = context.dropout(config_.hidden_dropout, layer_, DropoutSite::mlp_output)});
}

void Mlp::backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                   Tensor input_bias_gradient) const {
  const ArenaScope scope(context.scratch);
  {
    const ArenaScope inner(context.scratch);
    Tensor d_projected = gradient;
    if (drops_output()) {
      d_projected = context.scratch.allocate("mlp.d_projected", config_.compute, {context.tokens(), config_.hidden});
      ops::dropout_add(context.stream,
                       {.x = gradient,
                        .y = d_projected,
                        .dropout = context.dropout(config_.hidden_dropout, layer_, DropoutSite::mlp_output)});
      down_.backward_bias(context, d_projected);
    }
    Tensor activated = saved.activated;
    if (!activated) {
      activated = allocate_activated(context);
      activate(context, saved.up, activated);
    }
    down_.backward_weight(context, d_projected, activated);
    // The activation is no longer needed: its gradient takes its place.
    down_.backward_input(context, d_projected, activated);
    activate_backward(context, activated, saved.up);
  }
  const Tensor d_up = saved.up;
  Tensor normed = saved.normed;
  if (!normed) {
    normed = norm_.allocate_output(context);
    norm_.forward(context, input, normed, saved.statistics);
  }
  up_.backward_weight(context, d_up, normed);
  const Tensor d_normed = norm_.allocate_output(context);
  up_.backward_input(context, d_up, d_normed);
  norm_.backward(context, d_normed, input, saved.statistics, gradient, gradient, input_bias_gradient);
}

Tensor Mlp::allocate_activated(const Context& context) const {
  return context.scratch.allocate("mlp.activated", config_.compute, {context.tokens(), config_.ffn});
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
