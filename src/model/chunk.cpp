#include "model/chunk.h"

#include "core/trace.h"

namespace megalith::model {

namespace {
std::vector<Block> make_blocks(const ModelConfig& config, const parallel::ParameterStore& store,
                               const RopeTable& rope) {
  std::vector<Block> blocks;
  blocks.reserve(static_cast<size_t>(config.layers));
  for (int64_t layer = 0; layer < config.layers; ++layer) blocks.emplace_back(config, store, rope, layer);
  return blocks;
}
}  // namespace

Chunk::Chunk(const ModelConfig& config, const parallel::ParameterStore& store, Stream& stream, Arena& activations,
             int64_t batch, int64_t length)
    : config_(config),
      rope_(make_rope_table(config, stream, activations)),
      embedding_(config, store),
      blocks_(make_blocks(config, store, rope_)),
      head_(config, store) {
  const Shape shape{batch * length, config.hidden};
  for (size_t i = 0; i <= blocks_.size(); ++i)
    stream_.push_back(activations.allocate("residual", config.compute, shape));
  const bool one_for_all = config.recompute == Recompute::full;
  const Recompute policy = one_for_all ? Recompute::none : config.recompute;
  for (const Block& block : blocks_) {
    saved_.push_back(block.allocate_saved(activations, batch, length, policy));
    if (one_for_all) break;
  }
  gradient_ = activations.allocate("gradient", config.compute, shape);
}

void Chunk::forward(const Context& context, Tensor ids, const Targets& targets) {
  run_blocks(context, ids);
  const TraceRange range("head, forward and backward");
  head_.forward_backward(context, stream_.back(), targets, gradient_, blocks_.back().output_bias_gradient());
}

void Chunk::backward(const Context& context, Tensor ids) {
  for (size_t layer = blocks_.size(); layer-- > 0;) {
    const TraceRange range("backward, layer", static_cast<int64_t>(layer));
    // Under full recompute the shared room still holds the last block's values, and only those.
    if (config_.recompute == Recompute::full && layer + 1 != blocks_.size()) {
      blocks_[layer].forward(context, stream_[layer], stream_[layer + 1], saved_of(layer));
    }
    const Tensor input_bias_gradient = layer == 0 ? Tensor() : blocks_[layer - 1].output_bias_gradient();
    blocks_[layer].backward(context, stream_[layer], saved_of(layer), gradient_, input_bias_gradient);
  }
  const TraceRange range("backward, embedding");
  embedding_.backward(context, ids, gradient_);
}

void Chunk::evaluate(const Context& context, Tensor ids, const Targets& targets) {
  run_blocks(context, ids);
  head_.evaluate(context, stream_.back(), targets);
}

void Chunk::run_blocks(const Context& context, Tensor ids) {
  {
    const TraceRange range("forward, embedding");
    embedding_.forward(context, ids, stream_.front());
  }
  for (size_t layer = 0; layer < blocks_.size(); ++layer) {
    const TraceRange range("forward, layer", static_cast<int64_t>(layer));
    blocks_[layer].forward(context, stream_[layer], stream_[layer + 1], saved_of(layer));
  }
}

}  // namespace megalith::model
