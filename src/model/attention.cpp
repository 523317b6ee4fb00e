#include "model/attention.h"

#include <cmath>

#include "model/parameters.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/rope.h"

namespace megalith::model {

Attention::Attention(const ModelConfig& config, const parallel::ParameterStore& store, const RopeTable& rope,
                     int64_t layer)
    : config_(config),
      layer_(layer),
      rope_(rope),
      norm_(config, store, layer_name(layer, "attention.norm")),
      qkv_(store, layer_name(layer, "attention.qkv")),
      out_(store, layer_name(layer, "attention.out")) {}

Attention::Saved Attention::allocate_saved(Arena& arena, int64_t batch, int64_t length, bool keep_normed) const {
  const int64_t tokens = batch * length;
  Saved saved{.statistics = norm_.allocate_statistics(arena, tokens)};
  if (keep_normed) saved.normed = arena.allocate("attention.normed", config_.compute, {tokens, config_.hidden});
  saved.qkv = arena.allocate("attention.qkv", config_.compute, {tokens, config_.qkv_width()});
  saved.mixed = arena.allocate("attention.mixed", config_.compute, {tokens, config_.query_width()});
  saved.log_sum_exp =
      arena.allocate("attention.log_sum_exp", main_dtype(config_.compute), {batch * config_.heads, length});
  return saved;
}

void Attention::forward(const Context& context, Tensor input, Tensor output, const Saved& saved) const {
  const ArenaScope scope(context.scratch);
  const Tensor normed = saved.normed ? saved.normed : norm_.allocate_output(context);
  norm_.forward(context, input, normed, saved.statistics);
  qkv_.forward(context, normed, saved.qkv);
  rotate(context, saved.qkv, false);
  const Heads heads = split(saved.qkv);
  const Heads seen = context.cache != nullptr ? through_cache(context, heads) : heads;
  ops::attention_forward(context.stream,
                         {.q = seen.q,
                          .k = seen.k,
                          .v = seen.v,
                          .out = saved.mixed,
                          .log_sum_exp = saved.log_sum_exp,
                          .batch = context.batch,
                          .heads = config_.heads,
                          .kv_heads = config_.kv_heads,
                          .query_offset = context.position_offset,
                          .scale = scale(),
                          .document_starts = context.document_starts,
                          .document_bounds = context.document_bounds,
                          .dropout = context.dropout(config_.attention_dropout, layer_, DropoutSite::attention_weights),
                          .scratch = allocate_attention_scratch(context, seen.k.rows() / context.batch)});
  if (!drops_output()) {
    out_.forward_onto(context, saved.mixed, input, output);
    return;
  }
  const Tensor projected =
      context.scratch.allocate("attention.projected", config_.compute, {context.tokens(), config_.hidden});
  out_.forward(context, saved.mixed, projected);
  ops::dropout_add(context.stream,
                   {.x = projected,
                    .residual = input,
                    .y = output,
                    .dropout = context.dropout(config_.hidden_dropout, layer_, DropoutSite::attention_output)});
}

void Attention::backward(const Context& context, Tensor input, const Saved& saved, Tensor gradient,
                         Tensor input_bias_gradient) const {
  const ArenaScope scope(context.scratch);
  const int64_t tokens = context.tokens();
  const Tensor d_qkv = context.scratch.allocate("attention.d_qkv", config_.compute, {tokens, config_.qkv_width()});
  const Heads heads = split(saved.qkv);
  const Heads d_heads = split(d_qkv);
  {
    const ArenaScope inner(context.scratch);
    Tensor d_projected = gradient;
    if (drops_output()) {
      d_projected = context.scratch.allocate("attention.d_projected", config_.compute, {tokens, config_.hidden});
      ops::dropout_add(context.stream,
                       {.x = gradient,
                        .y = d_projected,
                        .dropout = context.dropout(config_.hidden_dropout, layer_, DropoutSite::attention_output)});
      out_.backward_bias(context, d_projected);
    }
    const Tensor d_mixed =
        context.scratch.allocate("attention.d_mixed", config_.compute, {tokens, config_.query_width()});
    out_.backward_input(context, d_projected, d_mixed);
    out_.backward_weight(context, d_projected, saved.mixed);
    ops::attention_backward(
        context.stream, {.dout = d_mixed,
                         .q = heads.q,
                         .k = heads.k,
                         .v = heads.v,
                         .out = saved.mixed,
                         .log_sum_exp = saved.log_sum_exp,
                         .dq = d_heads.q,
                         .dk = d_heads.k,
                         .dv = d_heads.v,
                         .batch = context.batch,
                         .heads = config_.heads,
                         .kv_heads = config_.kv_heads,
                         .scale = scale(),
                         .document_starts = context.document_starts,
                         .document_bounds = context.document_bounds,
                         .dropout = context.dropout(config_.attention_dropout, layer_, DropoutSite::attention_weights),
                         .deterministic = context.deterministic,
                         .scratch = allocate_attention_scratch(context, context.length)});
  }
  rotate(context, d_qkv, true);
  Tensor normed = saved.normed;
  if (!normed) {
    normed = norm_.allocate_output(context);
    norm_.forward(context, input, normed, saved.statistics);
  }
  qkv_.backward_weight(context, d_qkv, normed);
  qkv_.backward_bias(context, d_qkv);
  const Tensor d_normed = norm_.allocate_output(context);
  qkv_.backward_input(context, d_qkv, d_normed);
  norm_.backward(context, d_normed, input, saved.statistics, gradient, gradient, input_bias_gradient);
}

Attention::Heads Attention::split(Tensor qkv) const {
  const int64_t q = config_.query_width();
  const int64_t kv = config_.kv_width();
  return {.q = qkv.slice_cols(0, q), .k = qkv.slice_cols(q, q + kv), .v = qkv.slice_cols(q + kv, q + 2 * kv)};
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

Attention::Heads Attention::through_cache(const Context& context, const Heads& heads) const {
  MEGALITH_CHECK(context.batch == 1, "a cache holds one sequence, the batch has {}", context.batch);
  const auto layer = static_cast<size_t>(layer_);
  const int64_t begin = context.position_offset;
  const int64_t end = begin + context.length;
  ops::cast(context.stream, {.x = heads.k, .y = context.cache->keys[layer].slice_rows(begin, end)});
  ops::cast(context.stream, {.x = heads.v, .y = context.cache->values[layer].slice_rows(begin, end)});
  return {.q = heads.q,
          .k = context.cache->keys[layer].slice_rows(0, end),
          .v = context.cache->values[layer].slice_rows(0, end)};
}

Tensor Attention::allocate_attention_scratch(const Context& context, int64_t keys) const {
  const Tensor& bounds = context.document_bounds;
  const int64_t elements = ops::attention_scratch(context.stream.device(),
                                                  {.dtype = config_.compute,
                                                   .batch = context.batch,
                                                   .heads = config_.heads,
                                                   .kv_heads = config_.kv_heads,
                                                   .query_length = context.length,
                                                   .key_length = keys,
                                                   .head_dim = config_.head_dim,
                                                   .documents = bounds ? bounds.elements() - 1 : 0},
                                                  context.stream.pool().threads());
  return context.scratch.allocate("attention.blocks", main_dtype(config_.compute), {elements});
}

double Attention::scale() const {
  return 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
}

}  // namespace megalith::model
