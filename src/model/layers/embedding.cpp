#include "model/layers/embedding.h"

#include "ops/vocabulary/embedding.h"

namespace megalith::model {

namespace {
// Blocks draw from layer * 4 + {1, 2, 3}, so layer 0's first number is the embedding's.
constexpr int64_t kLayer = 0;
}  // namespace

Embedding::Embedding(const ModelConfig& config, const parallel::ParameterStore& store)
    : config_(config), tokens_(store["embedding.tokens.weight"]) {
  if (config.learned_positions) positions_ = store["embedding.positions.weight"];
}

void Embedding::forward(const Context& context, Tensor ids, Tensor out) const {
  const ArenaScope scope(context.scratch);
  const Tensor sum = context.tensor.divides_tokens()
                         ? context.scratch.allocate("embedding.sum", config_.compute, {ids.elements(), out.cols()})
                         : out;
  ops::embedding_forward(context.stream, {.ids = ids,
                                          .tokens_table = tokens_.weight,
                                          .positions_table = positions_of_first(context, positions_.weight),
                                          .positions = context.positions,
                                          .out = sum,
                                          .length = context.length,
                                          .position_offset = context.position_offset,
                                          .is_part = context.tensor.is_divided(),
                                          .first_id = first_id(context)});
  const Tensor rows = context.tensor.reduce(context.stream, sum);
  const ops::Dropout dropout = context.dropout_of_rows(config_.hidden_dropout, kLayer, DropoutSite::embedding);
  if (dropout.probability > 0.0) {
    ops::dropout_add(context.stream, {.x = rows, .y = out, .dropout = dropout});
  } else if (rows.data != out.data) {
    copy(context.stream, rows, out);
  }
}

void Embedding::backward(const Context& context, Tensor ids, const ops::RowOrder& order, Tensor gradient) const {
  const ops::Dropout dropout = context.dropout_of_rows(config_.hidden_dropout, kLayer, DropoutSite::embedding);
  if (dropout.probability > 0.0) ops::dropout_add(context.stream, {.x = gradient, .y = gradient, .dropout = dropout});
  const ArenaScope scope(context.scratch);
  const Tensor all = context.tensor.gather(context.stream, context.scratch, gradient);
  const int64_t scratch = ops::embedding_backward_scratch(context.stream.device(), ids.elements(), all.cols());
  // Where ranks divide the tokens, what they make of a whole parameter's gradient is added up: one makes all of it.
  const Tensor positions_gradient =
      context.tensor.divides_tokens() ? positions_of_first(context, positions_.gradient) : positions_.gradient;
  ops::embedding_backward(context.stream,
                          {.dout = all,
                           .ids = ids,
                           .tokens_gradient = tokens_.gradient,
                           .positions_gradient = positions_gradient,
                           .positions = context.positions,
                           .order = order,
                           .positions_order = context.positions_order,
                           .length = context.length,
                           .is_part = context.tensor.is_divided(),
                           .first_id = first_id(context),
                           .scratch = context.scratch.allocate("embedding.parts", DType::f32, {scratch})});
}

}  // namespace megalith::model
