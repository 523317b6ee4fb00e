#pragma once

#include "model/context.h"
#include "model/model_config.h"

namespace megalith::model {

// Queries, keys and values of all heads side by side, as a packed projection makes them.
struct Heads {
  Tensor q, k, v;
};

// Softmax attention itself, without parameters: within a rank, through a cache, or over samples that ranks share.
class AttentionCore {
 public:
  AttentionCore(const ModelConfig& config, int64_t layer) : config_(config), layer_(layer) {}

  Heads split(Tensor qkv) const;

  // qkv (tokens, qkv_width) -> mixed (tokens, query_width), log_sum_exp (batch * heads, length)
  void forward(const Context& context, Tensor qkv, Tensor mixed, Tensor log_sum_exp) const;
  // d_mixed -> d_qkv
  void backward(const Context& context, Tensor qkv, Tensor mixed, Tensor log_sum_exp, Tensor d_mixed,
                Tensor d_qkv) const;

 private:
  // One block of positions of one sample, against the keys from the sample's start to its own end.
  struct BlockView {
    int64_t sequence = 0;  // of this rank
    int64_t begin = 0;     // position of its first token
    int64_t first_key_row = 0;
    int64_t keys = 0;
  };
  std::vector<BlockView> blocks_of(const Context& context) const;
  Heads through_cache(const Context& context, const Heads& heads) const;
  // Keys and values of whole samples, side by side (samples * length, 2 * kv_width), from the ranks that share them.
  Tensor gather_samples(const Context& context, const Tensor& kv) const;
  // The reverse for gradients, added up: this rank's tokens, in scratch.
  Tensor scatter_samples(const Context& context, const Tensor& whole) const;
  void forward_shared(const Context& context, const Heads& heads, Tensor kv, Tensor mixed, Tensor log_sum_exp) const;
  void backward_shared(const Context& context, const Heads& heads, Tensor kv, Tensor mixed, Tensor log_sum_exp,
                       Tensor d_mixed, Tensor d_qkv) const;
  Tensor allocate_scratch(const Context& context, int64_t batch, int64_t keys) const;
  ops::Dropout dropout(const Context& context) const {
    return context.dropout(config_.attention_dropout, layer_, DropoutSite::attention_weights);
  }
  ops::Dropout dropout_of_block(const Context& context, int64_t sequence) const;
  int64_t head_offset(const Context& context) const { return context.tensor.rank() * config_.heads; }
  double scale() const;

  const ModelConfig& config_;
  int64_t layer_;
};

}  // namespace megalith::model
