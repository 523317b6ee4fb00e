#pragma once

#include "model/context.h"
#include "model/model_config.h"
#include "parallel/parameter_store.h"

namespace megalith::model {

// Token ids to vectors, with learned positions where the model has them.
class Embedding {
 public:
  Embedding(const ModelConfig& config, const parallel::ParameterStore& store);

  // ids (N) i32 -> out (N,C)
  void forward(const Context& context, Tensor ids, Tensor out) const;
  // Adds to the tables' gradients. Overwrites `gradient` (N,C).
  void backward(const Context& context, Tensor ids, Tensor gradient) const;

 private:
  const ModelConfig& config_;
  parallel::Parameter tokens_;
  parallel::Parameter positions_;
};

}  // namespace megalith::model
