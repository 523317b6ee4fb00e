#include "model/layers/mlp.h"

#include "model/parameters.h"
#include "ops/activation.h"

namespace megalith::model {

Mlp::Mlp(const ModelConfig& config, const parallel::ParameterStore& store, const Precision& precision, int64_t layer)
    : config_(config),
      norm_(config, store, layer_name(layer, "mlp.norm")),
      up_(store, precision, layer_name(layer, config.swiglu ? "mlp.gate_up" : "mlp.up")),
      down_(config, store, precision, layer_name(layer, "mlp.down"), layer, DropoutSite::mlp_output) {}

Mlp::Saved Mlp::allocate_saved(Arena& arena, const ActivationShape& shape, bool keep_recomputable) const {
  Saved saved{.statistics = norm_.allocate_statistics(arena, shape.rows)};
  if (keep_recomputable)
    saved.normed = allocate_kept_input(arena, "mlp.normed", up_.input(), shape, config_.hidden, true);
  saved.up = arena.allocate("mlp.up", config_.compute, {shape.tokens(), config_.up_width()});
  if (keep_recomputable)
    saved.activated = allocate_kept_input(arena, "mlp.activated", down_.input(), shape, config_.ffn, false);
  return saved;
}

void Mlp::forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const {
  const ArenaScope scope(context.scratch);
  const ops::Operand activated =
      with_rows(context, "mlp.activated", down_.input(), saved.activated, context.tokens(), config_.ffn);
  {
    const ArenaScope inner(context.scratch);
    const ops::Operand normed = norm_.forward(context, input, up_.input(), saved.normed, saved.statistics);
    if (config_.swiglu || down_.input().is_scaled()) {
      up_.forward(context, normed, saved.up);
      activate(context, saved.up, activated);
    } else {
      up_.forward_gelu(context, normed, saved.up, activated.rows);
    }
  }
  down_.forward(context, activated, input, output);
}

void Mlp::backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                   Tensor input_bias_gradient) const {
  const ArenaScope scope(context.scratch);
  const int64_t tokens = context.tokens();
  const ops::Operand d_up = up_.gradient().is_scaled() ? allocate_operand(context, "mlp.d_up", up_.gradient(), tokens,
                                                                          config_.up_width(), Sides::both)
                                                       : saved.up;
  Norm::Again normed = norm_.allocate_again(context, input, up_.input(), saved.normed);
  {
    const ArenaScope inner(context.scratch);
    const ops::Operand d_product = down_.backward_product(context, gradient);
    norm_.start_again(context, input, up_.input(), saved.statistics, normed);
    ops::Operand activated = saved.activated;
    if (down_.input().scaling == Scaling::delayed) activated.slot = down_.input().slot;
    if (!activated) {
      activated = allocate_operand(context, "mlp.activated", down_.input(), tokens, config_.ffn, Sides::columns);
      activate(context, saved.up, activated);
    }
    down_.backward_weight(context, d_product, activated);
    // The activation is no longer needed, unless a later product reads it: its gradient takes its place.
    const bool is_free = context.deferred == nullptr && !down_.input().is_scaled();
    const Tensor d_activated =
        is_free ? activated.rows : context.scratch.allocate("mlp.d_activated", config_.compute, {tokens, config_.ffn});
    down_.backward_input(context, d_product, d_activated);
    activate_backward(context, d_activated, saved.up, d_up);
  }
  const Tensor d_normed = norm_.allocate_tokens(context);
  up_.backward_input(context, d_up, d_normed);
  const auto d_rows = context.tensor.start_reduce(context.stream, d_normed);
  {
    const ArenaScope inner(context.scratch);
    up_.backward_weight(context, d_up, norm_.output_again(context, input, up_.input(), saved.statistics, normed));
  }
  norm_.backward(context, d_rows.finish(context.stream), input, saved.statistics, gradient, gradient,
                 input_bias_gradient);
}

void Mlp::cast_weights(const Context& context) const {
  up_.cast_weight(context);
  down_.cast_weight(context);
}

void Mlp::activate(const Context& context, Tensor up, const ops::Operand& activated) const {
  write_operand(context, down_.input(), activated, [&](const ops::Operand& y) {
    if (config_.swiglu) {
      ops::swiglu_forward(context.stream, {.gate_up = up, .y = y});
    } else {
      ops::gelu_forward(context.stream, {.x = up, .y = y});
    }
  });
}

void Mlp::activate_backward(const Context& context, Tensor d_activated, Tensor up, const ops::Operand& d_up) const {
  if (config_.swiglu) return swiglu_backward(context, d_activated, up, d_up);
  const ArenaScope scope(context.scratch);
  Tensor scratch;
  if (up_.bias_gradient()) {
    scratch = context.scratch.allocate("gelu.partial_sums", up_.bias_gradient().dtype,
                                       {ops::column_sum_scratch(up.rows(), up.cols())});
  }
  write_operand(context, up_.gradient(), d_up, [&](const ops::Operand& dx) {
    ops::gelu_backward(
        context.stream,
        {.dy = d_activated, .x = up, .dx = dx, .dbias = dx ? up_.bias_gradient() : Tensor(), .scratch = scratch});
  });
}

void Mlp::swiglu_backward(const Context& context, Tensor d_activated, Tensor up, const ops::Operand& d_up) const {
  // A bias sums what fp8 alone would have lost: its gradient is made from up's own memory.
  if (up_.bias_gradient()) {
    ops::swiglu_backward(context.stream, {.dy = d_activated, .gate_up = up, .dgate_up = up});
    up_.backward_bias(context, up);
    if (up_.gradient().is_scaled()) cast_operand(context, up_.gradient(), up, d_up);
    return;
  }
  write_operand(context, up_.gradient(), d_up, [&](const ops::Operand& d_gate_up) {
    ops::swiglu_backward(context.stream, {.dy = d_activated, .gate_up = up, .dgate_up = d_gate_up});
  });
}

}  // namespace megalith::model
