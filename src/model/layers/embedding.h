#pragma once

#include "model/context.h"
#include "model/model_config.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::model {

// Token ids to vectors, with learned positions where the model has them.
class Embedding {
 public:
  Embedding(const ModelConfig& config, const parallel::ParameterStore& store);

  // ids (tokens) i32 -> out (rows, C)
  void forward(const Context& context, Tensor ids, Tensor out) const;
  // Adds to the tables' gradients. Overwrites `gradient` (rows, C).
  void backward(const Context& context, Tensor ids, const ops::RowOrder& order, Tensor gradient) const;

 private:
  // Tensor-parallel ranks divide the rows of the token table; the first adds the positions.
  int64_t first_id(const Context& context) const { return context.tensor.rank() * tokens_.weight.rows(); }
  Tensor positions_of_first(const Context& context, const Tensor& positions) const {
    return context.tensor.rank() == 0 ? positions : Tensor();
  }

  const ModelConfig& config_;
  parallel::Parameter tokens_;
  parallel::Parameter positions_;
};

}  // namespace megalith::model
