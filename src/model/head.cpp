#include "model/head.h"

#include "ops/cross_entropy.h"
#include "ops/gemm.h"

namespace megalith::model {

Head::Head(const ModelConfig& config, const parallel::ParameterStore& store)
    : config_(config),
      norm_(config, store, "final_norm"),
      weight_(store[config.tied_embeddings ? "embedding.tokens.weight" : "head.weight"]) {}

void Head::evaluate(const Context& context, Tensor x, const Targets& targets) const {
  run(context, x, targets, {}, {});
}

void Head::forward_backward(const Context& context, Tensor x, const Targets& targets, Tensor gradient,
                            Tensor input_bias_gradient) const {
  run(context, x, targets, gradient, input_bias_gradient);
}

void Head::run(const Context& context, Tensor x, const Targets& targets, Tensor gradient,
               Tensor input_bias_gradient) const {
  const ArenaScope scope(context.scratch);
  const bool with_gradient = static_cast<bool>(gradient);
  const NormStatistics statistics = norm_.allocate_statistics(context.scratch, context.tokens());
  const Tensor normed = norm_.allocate_output(context);
  norm_.forward(context, x, normed, statistics);
  const int64_t piece_tokens = tokens_at_once(context.stream.device(), context.tokens());
  const Tensor logits_buffer =
      context.scratch.allocate("head.logits", config_.compute, {piece_tokens, config_.padded_vocabulary});
  for (int64_t begin = 0; begin < context.tokens(); begin += piece_tokens) {
    const int64_t end = std::min(context.tokens(), begin + piece_tokens);
    const Tensor piece = normed.slice_rows(begin, end);
    const Tensor logits = logits_buffer.slice_rows(0, end - begin);
    const auto of_piece = [&](const Tensor& per_token) {
      return per_token.view({context.tokens(), 1}).slice_rows(begin, end).view({end - begin});
    };
    ops::gemm(context.stream, {.a = piece, .b = weight_.weight, .transpose_b = true, .c = logits});
    ops::cross_entropy(context.stream, {.logits = logits,
                                        .targets = of_piece(targets.ids),
                                        .weights = of_piece(targets.weights),
                                        .losses = of_piece(targets.losses),
                                        .vocabulary = config_.vocabulary,
                                        .with_gradient = with_gradient,
                                        .gradient_scale = targets.gradient_scale});
    if (!with_gradient) continue;
    ops::gemm(context.stream, {.a = logits,
                               .transpose_a = true,
                               .b = piece,
                               .c = weight_.gradient,
                               .beta = context.first_of_step && begin == 0 ? 0.0F : 1.0F});
    // The normed piece is no longer needed: its gradient takes its place.
    ops::gemm(context.stream, {.a = logits, .b = weight_.weight, .c = piece});
  }
  if (with_gradient) norm_.backward(context, normed, x, statistics, {}, gradient, input_bias_gradient);
}

void Head::logits(const Context& context, Tensor x, Tensor logits) const {
  const ArenaScope scope(context.scratch);
  const NormStatistics statistics = norm_.allocate_statistics(context.scratch, x.rows());
  const Tensor normed = context.scratch.allocate("head.normed", config_.compute, x.shape);
  norm_.forward(context, x, normed, statistics);
  ops::gemm(context.stream, {.a = normed, .b = weight_.weight, .transpose_b = true, .c = logits});
}

}  // namespace megalith::model
