#pragma once

#include <string>

#include "model/model_config.h"
#include "model/operands.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::model {

// Per token, kept between forward and backward.
struct NormStatistics {
  Tensor mean;  // LayerNorm only
  Tensor rstd;
};

// LayerNorm or RMSNorm over the hidden dimension.
class Norm {
 public:
  Norm(const ModelConfig& config, const parallel::ParameterStore& store, const std::string& name);

  // A tensor (rows, hidden), for y.
  Tensor allocate_rows(Arena& arena, const Context& context) const;
  // A tensor (tokens, hidden) in scratch: what ranks make of the gradient of y, before they add it up.
  Tensor allocate_tokens(const Context& context) const;
  NormStatistics allocate_statistics(Arena& arena, int64_t tokens) const;

  void forward(const Context& context, Tensor x, Tensor y, const NormStatistics& statistics) const;
  // y of all tokens as rows for a GEMM, in scratch but for what `kept` holds, which is filled.
  ops::Operand forward(const Context& context, Tensor x, const OperandFormat& format, const ops::Operand& kept,
                       const NormStatistics& statistics) const;
  // y of all tokens for the gradient of the weights that read it: `kept`, or recomputed, in memory of context.kept().
  // Where ranks divide the tokens they gather it while the stream goes on: memory for that first, then the call, and
  // last the operand, which elsewhere is all that is done.
  struct Again {
    ops::Operand own;
    bool is_made = false;
    Tensor all = {};
    comm::Pending call = {};
  };
  Again allocate_again(const Context& context, Tensor x, const OperandFormat& format, const ops::Operand& kept) const;
  void start_again(const Context& context, Tensor x, const OperandFormat& format, const NormStatistics& statistics,
                   Again& again) const;
  ops::Operand output_again(const Context& context, Tensor x, const OperandFormat& format,
                            const NormStatistics& statistics, const Again& again) const;
  // dx = residual_gradient + the gradient with respect to x; `dy` is the gradient with respect to y. bias_gradient,
  // optional: += the column sums of dx, for a bias that was added into x. residual_gradient may be absent or dx itself.
  void backward(const Context& context, Tensor dy, Tensor x, const NormStatistics& statistics, Tensor residual_gradient,
                Tensor dx, Tensor bias_gradient) const;

 private:
  void write(const Context& context, Tensor x, const OperandFormat& format, const ops::Operand& y,
             const NormStatistics& statistics) const;

  ops::NormKind kind_;
  double epsilon_;
  DType compute_;
  DType main_;
  parallel::Parameter weight_;
  parallel::Parameter bias_;
};

}  // namespace megalith::model
