#include "model/layers/head.h"

#include "comm/communicator.h"
#include "ops/gemm.h"
#include "ops/vocabulary/cross_entropy.h"

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
  const int64_t tokens = context.tokens();
  const bool with_gradient = static_cast<bool>(gradient);
  const NormStatistics statistics = norm_.allocate_statistics(context.scratch, context.rows());
  const Tensor rows = norm_.allocate_rows(context.scratch, context);
  norm_.forward(context, x, rows, statistics);
  const Tensor normed = context.tensor.gather(context.stream, context.scratch, rows);
  {
    const ArenaScope inner(context.scratch);
    const int64_t piece_tokens = tokens_at_once(context.stream.device(), tokens);
    const Tensor logits_buffer =
        context.scratch.allocate("head.logits", config_.compute, {piece_tokens, weight_.weight.rows()});
    for (int64_t begin = 0; begin < tokens; begin += piece_tokens) {
      const int64_t end = std::min(tokens, begin + piece_tokens);
      const Tensor piece = normed.slice_rows(begin, end);
      const Tensor logits = logits_buffer.slice_rows(0, end - begin);
      const auto of_piece = [&](const Tensor& per_token) {
        return per_token.view({tokens, 1}).slice_rows(begin, end).view({end - begin});
      };
      ops::gemm(context.stream, {.a = piece, .b = weight_.weight, .transpose_b = true, .c = logits});
      judge(context, logits,
            {.ids = of_piece(targets.ids),
             .weights = of_piece(targets.weights),
             .losses = of_piece(targets.losses),
             .gradient_scale = targets.gradient_scale},
            with_gradient);
      if (!with_gradient) continue;
      ops::gemm(context.stream, {.a = logits,
                                 .transpose_a = true,
                                 .b = piece,
                                 .c = weight_.gradient,
                                 .beta = begin == 0 ? context.gradient_beta() : 1.0F});
      // The normed piece is no longer needed: its gradient takes its place.
      ops::gemm(context.stream, {.a = logits, .b = weight_.weight, .c = piece});
    }
  }
  if (!with_gradient) return;
  norm_.backward(context, context.tensor.reduce(context.stream, normed), x, statistics, {}, gradient,
                 input_bias_gradient);
}

void Head::judge(const Context& context, Tensor logits, const Targets& targets, bool with_gradient) const {
  if (!context.tensor.is_divided()) {
    ops::cross_entropy(context.stream, {.logits = logits,
                                        .targets = targets.ids,
                                        .weights = targets.weights,
                                        .losses = targets.losses,
                                        .vocabulary = config_.vocabulary,
                                        .with_gradient = with_gradient,
                                        .gradient_scale = targets.gradient_scale});
    return;
  }
  const ArenaScope scope(context.scratch);
  comm::Communicator& ranks = *context.tensor.group;
  const int64_t first_column = ranks.rank() * logits.cols();
  const Tensor all = context.scratch.allocate("head.statistics", main_dtype(config_.compute),
                                              {int64_t{3} * ranks.size(), logits.rows()});
  const Tensor own = all.slice_rows(int64_t{3} * ranks.rank(), int64_t{3} * (ranks.rank() + 1));
  ops::cross_entropy_part(context.stream, {.logits = logits,
                                           .targets = targets.ids,
                                           .statistics = own,
                                           .vocabulary = config_.vocabulary,
                                           .first_column = first_column});
  ranks.all_gather(context.stream, own, all).wait(context.stream);
  ops::cross_entropy_of_parts(context.stream, {.logits = logits,
                                               .targets = targets.ids,
                                               .weights = targets.weights,
                                               .losses = targets.losses,
                                               .statistics = all,
                                               .vocabulary = config_.vocabulary,
                                               .first_column = first_column,
                                               .with_gradient = with_gradient,
                                               .gradient_scale = targets.gradient_scale});
}

void Head::logits(const Context& context, Tensor x, Tensor logits) const {
  const ArenaScope scope(context.scratch);
  const NormStatistics statistics = norm_.allocate_statistics(context.scratch, x.rows());
  const Tensor normed = context.scratch.allocate("head.normed", config_.compute, x.shape);
  norm_.forward(context, x, normed, statistics);
  ops::gemm(context.stream, {.a = normed, .b = weight_.weight, .transpose_b = true, .c = logits});
}

}  // namespace megalith::model
