#include "model/chunk.h"

#include "core/trace.h"

namespace megalith::model {

using parallel::kEmbeddingLayer;
using parallel::kHeadLayer;

Chunk::Chunk(const ModelConfig& config, const parallel::ParameterStore& store, const RopeTable& rope,
             const ChunkPart& part, const ChunkMemory& memory)
    : part_(part), groups_(recompute_groups(config, part.layers.size())), room_(memory.recompute_room) {
  if (part.has_embedding) embedding_ = std::make_unique<Embedding>(config, store);
  if (part.has_head) head_ = std::make_unique<Head>(config, store);
  blocks_.reserve(static_cast<size_t>(part.layers.size()));
  for (int64_t layer = part.layers.begin; layer < part.layers.end; ++layer) {
    blocks_.emplace_back(config, store, memory.precision, rope, layer);
  }
  const int64_t recomputed = largest_recomputed_group(groups_);
  for (const RecomputeGroup& group : groups_) {
    if (!group.is_recomputed) continue;
    for (int64_t i = group.blocks.begin; i < group.blocks.end; ++i)
      room_.reserve(memory.activations, blocks_[static_cast<size_t>(i)], memory.shape, config, recomputed);
  }
  const Recompute policy = config.recompute == Recompute::full ? Recompute::none : config.recompute;
  for (int64_t i = 0; i < memory.slots; ++i) {
    Slot& slot = slots_.emplace_back();
    for (size_t group = 0; group < groups_.size(); ++group) {
      if (group > 0) {
        slot.inputs.push_back(
            memory.activations.allocate("residual", config.compute, {memory.shape.rows, config.hidden}));
      }
      if (groups_[group].is_recomputed) continue;
      const Block& block = blocks_[static_cast<size_t>(groups_[group].blocks.begin)];
      slot.saved.push_back(block.allocate_saved(memory.activations, memory.shape, policy));
    }
    if (!memory.defers_products) continue;
    slot.deferred_memory =
        std::make_unique<Arena>(memory.activations.beside("deferred products", memory.deferred_bytes_per_slot));
    slot.deferred = std::make_unique<DeferredProducts>(*slot.deferred_memory);
  }
}

void Chunk::forward(const Context& context, const Pass& pass) {
  if (embedding_) embed(context, pass);
  for (size_t group = 0; group < groups_.size(); ++group) forward_group(context, pass, group, output_of(pass, group));
  if (!head_) return;
  context.traffic.before_forward(context.stream, kHeadLayer);
  const TraceRange range("head, forward and backward");
  const Tensor bias_gradient = blocks_.empty() ? Tensor() : blocks_.back().output_bias_gradient();
  head_->forward_backward(context, last_output(pass), pass.targets, pass.gradient, bias_gradient);
}

void Chunk::backward(const Context& context, const Pass& pass) {
  // The head has made this gradient on its way; another chunk has not.
  if (!head_ && !blocks_.empty()) blocks_.back().backward_output_bias(context, pass.gradient);
  context.traffic.after_backward(context.stream, kHeadLayer);
  for (size_t group = groups_.size(); group-- > 0;) backward_group(context, pass, group);
  if (!embedding_) return;
  const TraceRange range("backward, embedding");
  embedding_->backward(context, pass.ids, pass.order, pass.gradient);
  context.traffic.after_backward(context.stream, kEmbeddingLayer);
}

void Chunk::backward_weight(Stream& stream, int64_t slot) {
  const TraceRange range("backward, weights");
  slot_of(slot).deferred->run(stream);
}

void Chunk::evaluate(const Context& context, const Pass& pass) {
  if (embedding_) embed(context, pass);
  for (size_t group = 0; group < groups_.size(); ++group) forward_group(context, pass, group, output_of(pass, group));
  if (!head_) return;
  context.traffic.before_forward(context.stream, kHeadLayer);
  head_->evaluate(context, last_output(pass), pass.targets);
}

void Chunk::embed(const Context& context, const Pass& pass) const {
  context.traffic.before_forward(context.stream, kEmbeddingLayer);
  const TraceRange range("forward, embedding");
  embedding_->forward(context, pass.ids, blocks_.empty() && !head_ ? pass.output : pass.input);
}

void Chunk::forward_group(const Context& context, const Pass& pass, size_t group, Tensor output) {
  const RecomputeGroup& members = groups_[group];
  const int64_t count = members.blocks.size();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t block = members.blocks.begin + i;
    context.traffic.before_forward(context.stream, layer_of(block));
    const TraceRange range("forward, layer", layer_of(block));
    const Tensor x = i == 0 ? input_of(pass, group) : room_.output(i - 1);
    const Tensor y = i == count - 1 ? output : room_.output(i);
    blocks_[static_cast<size_t>(block)].forward(context, x, y, saved_of(pass, members, i));
  }
  if (members.is_recomputed) room_.content = {.chunk = this, .slot = pass.slot, .group = group};
}

void Chunk::backward_group(Context context, const Pass& pass, size_t group) {
  const RecomputeGroup& members = groups_[group];
  const Tensor input = input_of(pass, group);
  const int64_t count = members.blocks.size();
  if (members.is_recomputed) {
    const RecomputeRoom::Content wanted{.chunk = this, .slot = pass.slot, .group = group};
    if (room_.content != wanted) forward_group(context, pass, group, room_.output(count - 1));
    // Backward uses up what lies here, and what comes next overwrites it: no product can wait.
    room_.content = {};
    context.deferred = nullptr;
  }
  for (int64_t i = count - 1; i >= 0; --i) {
    const int64_t block = members.blocks.begin + i;
    const TraceRange range("backward, layer", layer_of(block));
    const Tensor x = i == 0 ? input : room_.output(i - 1);
    blocks_[static_cast<size_t>(block)].backward(context, x, saved_of(pass, members, i), pass.gradient,
                                                 bias_gradient_before(block));
    context.traffic.after_backward(context.stream, layer_of(block));
  }
}

const Block::Saved& Chunk::saved_of(const Pass& pass, const RecomputeGroup& group, int64_t index) const {
  if (!group.is_recomputed) return slot_of(pass.slot).saved[group.saved];
  return room_.saved(index, blocks_[static_cast<size_t>(group.blocks.begin + index)]);
}

int64_t Chunk::deferred_peak() const {
  int64_t peak = 0;
  for (const Slot& slot : slots_) {
    if (slot.deferred_memory) peak = std::max(peak, slot.deferred_memory->peak());
  }
  return peak;
}

int64_t Chunk::deferred_capacity() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) {
    if (slot.deferred_memory) bytes += slot.deferred_memory->capacity();
  }
  return bytes;
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
