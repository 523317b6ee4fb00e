#pragma once

#include <string>

#include "model/context.h"
#include "parallel/parameter_store.h"

namespace megalith::model {

// y = x W^T + b
class Linear {
 public:
  Linear(const parallel::ParameterStore& store, const std::string& name);

  // x (N,in) -> y (N,out)
  void forward(const Context& context, Tensor x, Tensor y) const;
  // dy (N,out) -> dx (N,in)
  void backward_input(const Context& context, Tensor dy, Tensor dx) const;
  // Adds to the gradients of W and b.
  void backward_weight(const Context& context, Tensor dy, Tensor x) const;

 private:
  parallel::Parameter weight_;
  parallel::Parameter bias_;
};

}  // namespace megalith::model
