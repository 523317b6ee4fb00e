#include "model/embedding.h"

#include "ops/embedding.h"

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
  ops::embedding_forward(context.stream, {.ids = ids,
                                          .tokens_table = tokens_.weight,
                                          .positions_table = positions_.weight,
                                          .positions = context.positions,
                                          .out = out,
                                          .length = context.length,
                                          .position_offset = context.position_offset});
  const ops::Dropout dropout = context.dropout(config_.hidden_dropout, kLayer, DropoutSite::embedding);
  if (dropout.probability > 0.0) ops::dropout_add(context.stream, {.x = out, .y = out, .dropout = dropout});
}

void Embedding::backward(const Context& context, Tensor ids, Tensor gradient) const {
  const ops::Dropout dropout = context.dropout(config_.hidden_dropout, kLayer, DropoutSite::embedding);
  if (dropout.probability > 0.0) ops::dropout_add(context.stream, {.x = gradient, .y = gradient, .dropout = dropout});
  const ArenaScope scope(context.scratch);
  const int64_t scratch = ops::embedding_backward_scratch(context.stream.device(), ids.elements());
  ops::embedding_backward(context.stream,
                          {.dout = gradient,
                           .ids = ids,
                           .tokens_gradient = tokens_.gradient,
                           .positions_gradient = positions_.gradient,
                           .positions = context.positions,
                           .length = context.length,
                           .scratch = context.scratch.allocate("embedding.order", DType::i32, {scratch})});
}

}  // namespace megalith::model
