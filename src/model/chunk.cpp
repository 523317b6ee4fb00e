#include "model/chunk.h"

#include "core/trace.h"

namespace megalith::model {

namespace {

void tell(const std::function<void(int64_t)> LayerHooks::*hook, const Context& context, int64_t layer) {
  if (context.hooks != nullptr && context.hooks->*hook) (context.hooks->*hook)(layer);
}

constexpr int64_t kEmbeddingLayer = -1;

}  // namespace

Chunk::Chunk(const ModelConfig& config, const parallel::ParameterStore& store, const RopeTable& rope,
             const ChunkPart& part, const ChunkMemory& memory)
    : part_(part), groups_(recompute_groups(config, part.layers.size())), room_(memory.recompute_room) {
  if (part.has_embedding) embedding_ = std::make_unique<Embedding>(config, store);
  if (part.has_head) head_ = std::make_unique<Head>(config, store);
  blocks_.reserve(static_cast<size_t>(part.layers.size()));
  for (int64_t layer = part.layers.begin; layer < part.layers.end; ++layer) {
    blocks_.emplace_back(config, store, rope, layer);
  }
  const int64_t recomputed = largest_recomputed_group(groups_);
  if (recomputed > 0) room_.reserve(memory.activations, blocks_.front(), memory.shape, config, recomputed);
  const Recompute policy = config.recompute == Recompute::full ? Recompute::none : config.recompute;
  for (int64_t i = 0; i < memory.slots; ++i) {
    Slot& slot = slots_.emplace_back();
    for (size_t group = 0; group < groups_.size(); ++group) {
      if (group > 0) {
        slot.inputs.push_back(
            memory.activations.allocate("residual", config.compute, {memory.shape.rows, config.hidden}));
      }
      if (groups_[group].is_recomputed) continue;
      slot.saved.push_back(blocks_.front().allocate_saved(memory.activations, memory.shape, policy));
    }
    if (memory.deferred_bytes_per_layer == 0) continue;
    const Device device = memory.activations.whole().device;
    const int64_t bytes = std::ssize(slot.saved) * memory.deferred_bytes_per_layer;
    slot.deferred_memory = std::make_unique<Arena>("deferred products", device, bytes);
    slot.deferred = std::make_unique<DeferredProducts>(*slot.deferred_memory);
  }
}

void Chunk::forward(const Context& context, const Pass& pass) {
  run_blocks(context, pass);
  if (!head_) return;
  tell(&LayerHooks::before_forward, context, part_.layers.end);
  const TraceRange range("head, forward and backward");
  const Tensor bias_gradient = blocks_.empty() ? Tensor() : blocks_.back().output_bias_gradient();
  head_->forward_backward(context, last_output(pass), pass.targets, pass.gradient, bias_gradient);
}

void Chunk::backward(const Context& context, const Pass& pass) {
  // The head has made this gradient on its way; another chunk has not.
  if (!head_ && !blocks_.empty()) blocks_.back().backward_output_bias(context, pass.gradient);
  tell(&LayerHooks::after_backward, context, part_.layers.end);
  for (size_t group = groups_.size(); group-- > 0;) backward_group(context, pass, group);
  if (!embedding_) return;
  const TraceRange range("backward, embedding");
  embedding_->backward(context, pass.ids, pass.order, pass.gradient);
  tell(&LayerHooks::after_backward, context, kEmbeddingLayer);
}

void Chunk::backward_input(Context context, const Pass& pass) {
  context.deferred = slot_of(pass.slot).deferred.get();
  backward(context, pass);
}

void Chunk::backward_weight(Stream& stream, int64_t slot) {
  const TraceRange range("backward, weights");
  slot_of(slot).deferred->run(stream);
}

void Chunk::evaluate(const Context& context, const Pass& pass) {
  run_blocks(context, pass);
  if (!head_) return;
  tell(&LayerHooks::before_forward, context, part_.layers.end);
  head_->evaluate(context, last_output(pass), pass.targets);
}

void Chunk::run_blocks(const Context& context, const Pass& pass) {
  if (embedding_) embed(context, pass);
  for (size_t group = 0; group < groups_.size(); ++group) {
    forward_group(context, pass.slot, group, input_of(pass, group), output_of(pass, group));
  }
}

void Chunk::embed(const Context& context, const Pass& pass) const {
  tell(&LayerHooks::before_forward, context, kEmbeddingLayer);
  const TraceRange range("forward, embedding");
  embedding_->forward(context, pass.ids, blocks_.empty() && !head_ ? pass.output : pass.input);
}

void Chunk::forward_group(const Context& context, int64_t slot, size_t group, Tensor input, Tensor output) {
  const RecomputeGroup& members = groups_[group];
  const int64_t count = members.blocks.size();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t block = members.blocks.begin + i;
    tell(&LayerHooks::before_forward, context, layer_of(block));
    const TraceRange range("forward, layer", layer_of(block));
    const Tensor x = i == 0 ? input : room_.output(i - 1);
    const Tensor y = i == count - 1 ? output : room_.output(i);
    const Block::Saved& saved = members.is_recomputed ? room_.saved(i) : slot_of(slot).saved[members.saved];
    blocks_[static_cast<size_t>(block)].forward(context, x, y, saved);
  }
  if (members.is_recomputed) room_.content = {.chunk = this, .slot = slot, .group = group};
}

void Chunk::backward_group(Context context, const Pass& pass, size_t group) {
  const RecomputeGroup& members = groups_[group];
  const Tensor input = input_of(pass, group);
  const int64_t count = members.blocks.size();
  if (members.is_recomputed) {
    const RecomputeRoom::Content wanted{.chunk = this, .slot = pass.slot, .group = group};
    if (room_.content != wanted) forward_group(context, pass.slot, group, input, room_.output(count - 1));
    // Backward uses up what lies here, and what comes next overwrites it: no product can wait.
    room_.content = {};
    context.deferred = nullptr;
  }
  for (int64_t i = count - 1; i >= 0; --i) {
    const int64_t block = members.blocks.begin + i;
    const TraceRange range("backward, layer", layer_of(block));
    const Tensor x = i == 0 ? input : room_.output(i - 1);
    const Block::Saved& saved = members.is_recomputed ? room_.saved(i) : slot_of(pass.slot).saved[members.saved];
    blocks_[static_cast<size_t>(block)].backward(context, x, saved, pass.gradient, bias_gradient_before(block));
    tell(&LayerHooks::after_backward, context, layer_of(block));
  }
}

Tensor Chunk::input_of(const Pass& pass, size_t group) const {
  return group == 0 ? pass.input : slot_of(pass.slot).inputs[group - 1];
}

Tensor Chunk::output_of(const Pass& pass, size_t group) const {
  return group + 1 == groups_.size() ? pass.output : slot_of(pass.slot).inputs[group];
}

Tensor Chunk::bias_gradient_before(int64_t block) const {
  return block == 0 ? Tensor() : blocks_[static_cast<size_t>(block - 1)].output_bias_gradient();
}

}  // namespace megalith::model
