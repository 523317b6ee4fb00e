#pragma once

#include "model/norm.h"

namespace megalith::model {

// What a micro batch is judged by.
struct Targets {
  Tensor ids;                   // (N) i32
  Tensor weights;               // (N) main dtype; 0 leaves a token out
  Tensor losses;                // (N) main dtype, written
  double gradient_scale = 0.0;  // 1 / the weight of all tokens of the step
};

// Final norm, language-model head and cross entropy. Logits exist for kTokensAtOnce tokens at a time: forward turns
// each piece into gradients before it goes on to the next.
class Head {
 public:
  static constexpr int64_t kTokensAtOnce = 512;

  Head(const ModelConfig& config, const parallel::ParameterStore& store);

  // Losses alone.
  void evaluate(const Context& context, Tensor x, const Targets& targets) const;
  // Losses, the gradients of the head's parameters, and in `gradient` (N,C) that of x.
  void forward_backward(const Context& context, Tensor x, const Targets& targets, Tensor gradient) const;
  // logits (n, padded vocabulary) of the rows of x (n,C).
  void logits(const Context& context, Tensor x, Tensor logits) const;

  static int64_t tokens_at_once(int64_t tokens) { return std::min(tokens, kTokensAtOnce); }

 private:
  void run(const Context& context, Tensor x, const Targets& targets, Tensor gradient) const;

  const ModelConfig& config_;
  Norm norm_;
  parallel::Parameter weight_;  // the token embedding where the two are tied
};

}  // namespace megalith::model
