#pragma once

#include "model/context.h"
#include "model/model_config.h"
#include "ops/attention.h"

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
  // Queries that one operation takes, with the keys they may see.
  struct Part {
    int64_t batch = 1;
    int64_t query_offset = 0;
    Tensor document_starts;
    Tensor document_bounds;
    ops::Dropout dropout;
    int64_t dropout_keys = 0;
  };
  struct Outputs {
    Tensor mixed, log_sum_exp;
  };
  struct Gradients {
    Tensor d_mixed;
    Heads d_heads;
  };
  // With scratch of its own, which belongs to the caller's scope.
  ops::AttentionForward operation(const Context& context, const Part& part, const Heads& heads,
                                  const Outputs& outputs) const;
  void forward_part(const Context& context, const Part& part, const Heads& heads, const Outputs& outputs) const;
  void backward_part(const Context& context, const Part& part, const Heads& heads, const Outputs& outputs,
                     const Gradients& gradients) const;
  // All of a rank's own samples.
  Part whole(const Context& context) const;

  // A block of positions of a sample that ranks share, against the keys from the sample's start to its own end.
  struct Block {
    parallel::Interval tokens;      // of this rank
    parallel::Interval statistics;  // its rows of log_sum_exp
    parallel::Interval keys;        // rows of the whole samples
    Part part;
  };
  std::vector<Block> blocks_of(const Context& context) const;
  void forward_shared(const Context& context, Tensor qkv, const Outputs& outputs) const;
  void backward_shared(const Context& context, Tensor qkv, const Outputs& outputs, Tensor d_mixed, Tensor d_qkv) const;
  // Keys and values of whole samples, side by side (samples * length, 2 * kv_width), from the ranks that share them.
  Tensor gather_samples(const Context& context, const Tensor& kv) const;
  // The reverse for gradients, added up: this rank's tokens, in scratch.
  Tensor scatter_samples(const Context& context, const Tensor& whole) const;

  // Each sequence of the batch against its own keys so far.
  void forward_cached(const Context& context, Tensor qkv, const Outputs& outputs) const;
  Heads through_cache(const Context& context, const KvCache::Sequence& cached, const Heads& heads) const;
  Tensor keys_and_values(Tensor qkv) const { return qkv.slice_cols(config_.query_width(), qkv.cols()); }
  Tensor allocate_scratch(const Context& context, const Part& part, const Heads& heads) const;
  ops::Dropout dropout(const Context& context) const {
    return context.dropout(config_.attention_dropout, layer_, DropoutSite::attention_weights);
  }
  int64_t head_offset(const Context& context) const { return context.tensor.rank() * config_.heads; }

  const ModelConfig& config_;
  int64_t layer_;
};

}  // namespace megalith::model
