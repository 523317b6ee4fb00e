#include "model/layers/attention.h"

#include "model/parameters.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/rope.h"

namespace megalith::model {

Attention::Attention(const ModelConfig& config, const parallel::ParameterStore& store, const Precision& precision,
                     const RopeTable& rope, int64_t layer)
    : config_(config),
      rope_(rope),
      norm_(config, store, layer_name(layer, "attention.norm")),
      qkv_(store, precision, layer_name(layer, "attention.qkv")),
      core_(config, layer),
      out_(config, store, precision, layer_name(layer, "attention.out"), layer, DropoutSite::attention_output) {}

Attention::Saved Attention::allocate_saved(Arena& arena, const ActivationShape& shape, bool keep_recomputable) const {
  Saved saved{.statistics = norm_.allocate_statistics(arena, shape.rows)};
  if (keep_recomputable)
    saved.normed = allocate_kept_input(arena, "attention.normed", qkv_.input(), shape, config_.hidden, true);
  saved.qkv = arena.allocate("attention.qkv", config_.compute, {shape.tokens(), config_.qkv_width()});
  saved.mixed = arena.allocate("attention.mixed", config_.compute, {shape.tokens(), config_.query_width()});
  // Where memory is short, weights are not kept twice either.
  if (keep_recomputable && out_.input().is_scaled() && config_.precision.weight_copies == 2)
    saved.turned = allocate_kept_input(arena, "attention.turned", out_.input(), shape, config_.query_width(), false);
  saved.log_sum_exp =
      arena.allocate("attention.log_sum_exp", main_dtype(config_.compute), {shape.batch * config_.heads, shape.length});
  return saved;
}

void Attention::forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const {
  {
    const ArenaScope scope(context.scratch);
    qkv_.forward(context, norm_.forward(context, input, qkv_.input(), saved.normed, saved.statistics), saved.qkv);
  }
  rotate(context, saved.qkv, false);
  core_.forward(context, saved.qkv, saved.mixed, saved.log_sum_exp);
  const ArenaScope scope(context.scratch);
  out_.forward(context, mixed_for_product(context, saved), input, output);
}

ops::Operand Attention::mixed_for_product(const Context& context, const Saved& saved) const {
  if (!saved.turned) return operand_of(context, "attention.mixed", out_.input(), saved.mixed, Sides::rows);
  const ops::Operand both =
      with_rows(context, "attention.mixed", out_.input(), saved.turned, saved.mixed.rows(), saved.mixed.cols());
  cast_operand(context, out_.input(), saved.mixed, both);
  return both;
}

ops::Operand Attention::mixed_for_gradient(const Context& context, const Saved& saved) const {
  if (!saved.turned) return operand_of(context, "attention.mixed", out_.input(), saved.mixed, Sides::columns);
  ops::Operand turned = saved.turned;
  if (out_.input().scaling == Scaling::delayed) turned.slot = out_.input().slot;
  return turned;
}

void Attention::backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                         Tensor input_bias_gradient) const {
  const ArenaScope scope(context.scratch);
  const int64_t tokens = context.tokens();
  const Tensor d_qkv = (qkv_.gradient().is_scaled() ? context.scratch : context.kept())
                           .allocate("attention.d_qkv", config_.compute, {tokens, config_.qkv_width()});
  Norm::Again normed = norm_.allocate_again(context, input, qkv_.input(), saved.normed);
  {
    const ArenaScope inner(context.scratch);
    const ops::Operand d_product = out_.backward_product(context, gradient);
    norm_.start_again(context, input, qkv_.input(), saved.statistics, normed);
    const Tensor d_mixed =
        context.scratch.allocate("attention.d_mixed", config_.compute, {tokens, config_.query_width()});
    out_.backward_input(context, d_product, d_mixed);
    out_.backward_weight(context, d_product, mixed_for_gradient(context, saved));
    core_.backward(context, saved.qkv, saved.mixed, saved.log_sum_exp, d_mixed, d_qkv);
  }
  rotate(context, d_qkv, true);
  const ops::Operand d_product = qkv_gradient(context, d_qkv);
  const Tensor d_normed = norm_.allocate_tokens(context);
  qkv_.backward_input(context, d_product, d_normed);
  const auto d_rows = context.tensor.start_reduce(context.stream, d_normed);
  {
    const ArenaScope inner(context.scratch);
    qkv_.backward_weight(context, d_product,
                         norm_.output_again(context, input, qkv_.input(), saved.statistics, normed));
  }
  norm_.backward(context, d_rows.finish(context.stream), input, saved.statistics, gradient, gradient,
                 input_bias_gradient);
}

ops::Operand Attention::qkv_gradient(const Context& context, Tensor d_qkv) const {
  if (qkv_.gradient().is_scaled()) {
    add_up_shared_heads(context, d_qkv);
    return operand_of(context, "attention.d_qkv", qkv_.gradient(), d_qkv, Sides::both, qkv_.bias_gradient());
  }
  qkv_.backward_bias(context, d_qkv);
  return d_qkv;
}

// Otherwise fp8 would round the part of each rank's queries where one rank alone rounds the sum.
void Attention::add_up_shared_heads(const Context& context, Tensor d_qkv) const {
  comm::Communicator* group = context.tensor.kv_heads;
  if (group->is_alone()) return;
  const ArenaScope scope(context.scratch);
  const Tensor d_kv = d_qkv.slice_cols(config_.query_width(), config_.qkv_width());
  const Tensor packed = context.scratch.allocate("attention.d_kv", config_.compute, {d_kv.rows(), d_kv.cols()});
  ops::dropout_add(context.stream, {.x = d_kv, .y = packed});
  group->all_reduce(context.stream, packed).wait(context.stream);
  if (group->rank() != 0) ops::fill(context.stream, {.x = packed, .value = 0.0});
  ops::dropout_add(context.stream, {.x = packed, .y = d_kv});
}

void Attention::cast_weights(const Context& context) const {
  qkv_.cast_weight(context);
  out_.cast_weight(context);
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
