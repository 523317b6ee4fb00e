#pragma once

#include <vector>

#include "model/block.h"
#include "model/embedding.h"
#include "model/head.h"

namespace megalith::model {

// The layers that one rank computes in one go: here the whole model. Holds the activations of one micro batch of
// `batch` x `length` tokens.
class Chunk {
 public:
  Chunk(const ModelConfig& config, const parallel::ParameterStore& store, Stream& stream, Arena& activations,
        int64_t batch, int64_t length);
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  // Losses; the head's gradients are made on the way, since its logits are not kept.
  void forward(const Context& context, Tensor ids, const Targets& targets);
  // Gradients of everything before the head, of the micro batch that went forward last.
  void backward(const Context& context, Tensor ids);
  // Losses alone.
  void evaluate(const Context& context, Tensor ids, const Targets& targets);

 private:
  void run_blocks(const Context& context, Tensor ids);
  const Block::Saved& saved_of(size_t layer) const { return saved_[saved_.size() == 1 ? 0 : layer]; }

  const ModelConfig& config_;
  RopeTable rope_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  Head head_;
  std::vector<Tensor> stream_;       // the residual stream before each block and after the last
  std::vector<Block::Saved> saved_;  // one per block, or one for all under full recompute
  Tensor gradient_;
};

}  // namespace megalith::model
