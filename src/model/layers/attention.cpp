#include "model/layers/attention.h"

#include "model/parameters.h"
#include "ops/rope.h"

namespace megalith::model {

Attention::Attention(const ModelConfig& config, const parallel::ParameterStore& store, const RopeTable& rope,
                     int64_t layer)
    : config_(config),
      rope_(rope),
      norm_(config, store, layer_name(layer, "attention.norm")),
      qkv_(store, layer_name(layer, "attention.qkv")),
      core_(config, layer),
      out_(config, store, layer_name(layer, "attention.out"), layer, DropoutSite::attention_output) {}

Attention::Saved Attention::allocate_saved(Arena& arena, const ActivationShape& shape, bool keep_normed) const {
  Saved saved{.statistics = norm_.allocate_statistics(arena, shape.rows)};
  if (keep_normed) saved.normed = arena.allocate("attention.normed", config_.compute, {shape.rows, config_.hidden});
  saved.qkv = arena.allocate("attention.qkv", config_.compute, {shape.tokens(), config_.qkv_width()});
  saved.mixed = arena.allocate("attention.mixed", config_.compute, {shape.tokens(), config_.query_width()});
  saved.log_sum_exp =
      arena.allocate("attention.log_sum_exp", main_dtype(config_.compute), {shape.batch * config_.heads, shape.length});
  return saved;
}

void Attention::forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const {
  {
    const ArenaScope scope(context.scratch);
    const Tensor normed = saved.normed ? saved.normed : norm_.allocate_rows(context.scratch, context);
    norm_.forward(context, input, normed, saved.statistics);
    qkv_.forward(context, context.tensor.gather(context.stream, context.scratch, normed), saved.qkv);
  }
  rotate(context, saved.qkv, false);
  core_.forward(context, saved.qkv, saved.mixed, saved.log_sum_exp);
  out_.forward(context, saved.mixed, input, output);
}

void Attention::backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                         Tensor input_bias_gradient) const {
  const ArenaScope scope(context.scratch);
  const int64_t tokens = context.tokens();
  const Tensor d_qkv = context.kept().allocate("attention.d_qkv", config_.compute, {tokens, config_.qkv_width()});
  {
    const ArenaScope inner(context.scratch);
    const Tensor d_product = out_.backward_product(context, gradient);
    const Tensor d_mixed =
        context.scratch.allocate("attention.d_mixed", config_.compute, {tokens, config_.query_width()});
    out_.backward_input(context, d_product, d_mixed);
    out_.backward_weight(context, d_product, saved.mixed);
    core_.backward(context, saved.qkv, saved.mixed, saved.log_sum_exp, d_mixed, d_qkv);
  }
  rotate(context, d_qkv, true);
  {
    const ArenaScope inner(context.scratch);
    qkv_.backward_weight(context, d_qkv, norm_.output_again(context, input, saved.normed, saved.statistics));
  }
  qkv_.backward_bias(context, d_qkv);
  const Tensor d_normed = norm_.allocate_tokens(context);
  qkv_.backward_input(context, d_qkv, d_normed);
  norm_.backward(context, context.tensor.reduce(context.stream, d_normed), input, saved.statistics, gradient, gradient,
                 input_bias_gradient);
}

// q and k lie side by side: one call turns both.
void Attention::rotate(const Context& context, Tensor qkv, bool inverse) const {
  if (!rope_.cos) return;
  ops::rope(context.stream, {.x = qkv.slice_cols(0, config_.query_width() + config_.kv_width()),
                             .head_dim = config_.head_dim,
                             .length = context.length,
                             .position_offset = context.position_offset,
                             .positions = context.positions,
                             .angles_cos = rope_.cos,
                             .angles_sin = rope_.sin,
                             .inverse = inverse});
}

}  // namespace megalith::model
