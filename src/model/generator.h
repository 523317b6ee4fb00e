#pragma once

#include <vector>

#include "model/block.h"
#include "model/embedding.h"
#include "model/head.h"

namespace megalith::model {

// The model with weights alone, fed token by token; keys and values are kept.
class Generator {
 public:
  Generator(const ModelConfig& config, const parallel::ParameterStore& store, Stream& stream, Arena& cache,
            int64_t max_length);
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Feeds ids (n) i32 at context.position_offset; logits (padded vocabulary) of the last one.
  void feed(Context context, Tensor ids, Tensor logits);

 private:
  const ModelConfig& config_;
  RopeTable rope_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  Head head_;
  KvCache cache_;
};

}  // namespace megalith::model
