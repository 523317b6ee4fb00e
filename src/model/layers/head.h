#pragma once

#include "model/layers/norm.h"

namespace megalith::model {

// What a micro batch is judged by.
struct Targets {
  Tensor ids;                              // (N) i32
  Tensor weights;                          // (N) main dtype; 0 leaves a token out
  Tensor losses;                           // (N) main dtype, written
  const double* gradient_scale = nullptr;  // 1 / the weight of all tokens of the step; in the memory of the device
};

// Final norm, language-model head and cross entropy. Logits exist for a piece of the tokens at a time: forward turns
// each piece into gradients before it goes on to the next.
class Head {
 public:
  Head(const ModelConfig& config, const parallel::ParameterStore& store);

  // Losses alone.
  void evaluate(const Context& context, Tensor x, const Targets& targets) const;
  // Losses, the gradients of the head's parameters, and in `gradient` (rows, C) that of x; input_bias_gradient as in
  // Block.
  void forward_backward(const Context& context, Tensor x, const Targets& targets, Tensor gradient,
                        Tensor input_bias_gradient) const;
  // logits (n, padded vocabulary) of the rows of x (n,C).
  void logits(const Context& context, Tensor x, Tensor logits) const;

  // Tokens of a piece: what stays in a CPU's cache; on a GPU enough to keep it busy, and never all of many.
  static int64_t tokens_at_once(Device device, int64_t tokens) {
    constexpr int64_t kSmall = 512;
    constexpr int64_t kLarge = 8192;
    return std::min(tokens, device == Device::cpu ? kSmall : std::clamp(ceil_div(tokens, 2), kSmall, kLarge));
  }

 private:
  void run(const Context& context, Tensor x, const Targets& targets, Tensor gradient, Tensor input_bias_gradient) const;
  // Losses of a piece of the tokens; where wanted, logits become their own gradient.
  void judge(const Context& context, Tensor logits, const Targets& targets, bool with_gradient) const;

  const ModelConfig& config_;
  Norm norm_;
  parallel::Parameter weight_;  // the token embedding where the two are tied
};

}  // namespace megalith::model
