#pragma once

#include <memory>
#include <vector>

#include "model/layers/block.h"
#include "model/layers/embedding.h"
#include "model/layers/head.h"
#include "model/recompute.h"

namespace megalith::model {

// Layers that one rank computes in one go: all of the model or a part of it.
struct ChunkPart {
  parallel::Interval layers;
  bool has_embedding = true;
  bool has_head = true;
};

struct ChunkMemory {
  const Precision& precision;
  Arena& activations;
  RecomputeRoom& recompute_room;  // shared by the chunks of a rank
  ActivationShape shape;
  int64_t slots = 1;                    // micro batches whose activations are kept at once
  bool defers_products = false;         // weight gradients are computed later than the others: backward comes in halves
  int64_t deferred_bytes_per_slot = 0;  // for what those read
};

// One micro batch on its way through a chunk. The pieces of the residual stream (rows, C) are the caller's.
struct Pass {
  int64_t slot = 0;
  Tensor input;         // before the first block; the embedding writes it
  Tensor output;        // behind the last block
  Tensor gradient;      // of the output; backward turns it into that of the input. The head writes it in forward
  Tensor ids;           // (tokens) i32, for the embedding
  ops::RowOrder order;  // of the ids, for its backward pass on a GPU
  Targets targets;      // for the head
};

class Chunk {
 public:
  Chunk(const ModelConfig& config, const parallel::ParameterStore& store, const RopeTable& rope, const ChunkPart& part,
        const ChunkMemory& memory);
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  // With the head: losses, and its gradients on the way, since its logits are not kept.
  void forward(const Context& context, const Pass& pass);
  // Gradients of everything but the head, of a micro batch that went forward. With the slot's deferred() in the context
  // only what the chunk before waits for; backward_weight() is then what is left.
  void backward(const Context& context, const Pass& pass);
  void backward_weight(Stream& stream, int64_t slot);
  DeferredProducts* deferred(int64_t slot) const { return slot_of(slot).deferred.get(); }
  // Losses alone.
  void evaluate(const Context& context, const Pass& pass);

  const ChunkPart& part() const { return part_; }
  // Bytes of each slot that deferred products have used at most, and of all slots together that they may.
  int64_t deferred_peak() const;
  int64_t deferred_capacity() const;

 private:
  struct Slot {
    std::vector<Tensor> inputs;       // of every group but the first
    std::vector<Block::Saved> saved;  // of the groups that are kept
    std::unique_ptr<Arena> deferred_memory;
    std::unique_ptr<DeferredProducts> deferred;
  };

  void embed(const Context& context, const Pass& pass) const;
  void forward_group(const Context& context, const Pass& pass, size_t group, Tensor output);
  void backward_group(Context context, const Pass& pass, size_t group);
  // Of the block `index` of a group.
  const Block::Saved& saved_of(const Pass& pass, const RecomputeGroup& group, int64_t index) const;
  Tensor input_of(const Pass& pass, size_t group) const;
  Tensor output_of(const Pass& pass, size_t group) const;
  // Of the residual stream behind the last block, which the head reads.
  Tensor last_output(const Pass& pass) const { return blocks_.empty() ? pass.input : pass.output; }
  const Slot& slot_of(int64_t slot) const { return slots_[static_cast<size_t>(slot)]; }
  // Of the block before this one, where it is in this chunk too.
  Tensor bias_gradient_before(int64_t block) const;
  int64_t layer_of(int64_t block) const { return part_.layers.begin + block; }

  ChunkPart part_;
  std::unique_ptr<Embedding> embedding_;
  std::vector<Block> blocks_;
  std::unique_ptr<Head> head_;
  std::vector<RecomputeGroup> groups_;
  RecomputeRoom& room_;
  std::vector<Slot> slots_;
};

}  // namespace megalith::model
