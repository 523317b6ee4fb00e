#pragma once

#include <span>
#include <vector>

#include "model/layers/block.h"
#include "model/layers/embedding.h"
#include "model/layers/head.h"

namespace megalith::model {

// The model with weights alone: continues several sequences, whose keys and values are kept, and judges texts.
class Generator {
 public:
  struct Limits {
    int64_t sequences = 1;  // that are kept at a time
    int64_t length = 0;     // of each
  };
  Generator(const ModelConfig& config, const parallel::ParameterStore& store, Stream& stream, Arena& cache,
            const Limits& limits);
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Feeds ids (n) i32 to a sequence, the first of them at context.position_offset; logits (1, padded vocabulary) of the
  // last one.
  void feed(Context context, int64_t sequence, Tensor ids, Tensor logits);
  // Feeds one id to each of these sequences at context.positions, which `positions` repeats; logits (n, padded
  // vocabulary). Rows do not depend on each other.
  void feed_each(Context context, std::span<const int64_t> sequences, std::span<const int32_t> positions, Tensor ids,
                 Tensor logits);
  // The losses of targets after each of ids (n) i32, one text from its start; what is kept stays as it is.
  void judge(const Context& context, Tensor ids, const Targets& targets);

 private:
  // The residual stream after the last block, in the caller's scope.
  Tensor run_blocks(const Context& context, Tensor ids);

  const ModelConfig& config_;
  Limits limits_;
  RopeTable rope_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  Head head_;
  KvCache cache_;
};

}  // namespace megalith::model
