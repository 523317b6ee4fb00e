#include "model/layers/norm.h"

namespace megalith::model {

Norm::Norm(const ModelConfig& config, const parallel::ParameterStore& store, const std::string& name)
    : kind_(config.norm),
      epsilon_(config.epsilon),
      compute_(config.compute),
      main_(main_dtype(config.compute)),
      weight_(store[name + ".weight"]) {
  if (config.has_norm_bias()) bias_ = store[name + ".bias"];
}

Tensor Norm::allocate_rows(Arena& arena, const Context& context) const {
  return arena.allocate("norm.output", compute_, {context.rows(), weight_.weight.cols()});
}

Tensor Norm::allocate_tokens(const Context& context) const {
  return context.scratch.allocate("norm.d_output", compute_, {context.tokens(), weight_.weight.cols()});
}

NormStatistics Norm::allocate_statistics(Arena& arena, int64_t tokens) const {
  NormStatistics statistics{.rstd = arena.allocate("norm.rstd", main_, {tokens})};
  if (kind_ == ops::NormKind::layer_norm) statistics.mean = arena.allocate("norm.mean", main_, {tokens});
  return statistics;
}

void Norm::forward(const Context& context, Tensor x, Tensor y, const NormStatistics& statistics) const {
  write(context, x, {.dtype = compute_}, y, statistics);
}

ops::Operand Norm::forward(const Context& context, Tensor x, const OperandFormat& format, const ops::Operand& kept,
                           const NormStatistics& statistics) const {
  const ops::Operand y = with_rows(context, "norm.output", format, kept, x.rows(), x.cols());
  write(context, x, format, y, statistics);
  return gather(context, format, y, Sides::rows);
}

Norm::Again Norm::allocate_again(const Context& context, Tensor x, const OperandFormat& format,
                                 const ops::Operand& kept) const {
  Again again{.own = kept, .is_made = static_cast<bool>(kept)};
  if (format.scaling == Scaling::delayed) again.own.slot = format.slot;
  if (!context.tensor.divides_tokens()) return again;
  if (!kept) again.own = allocate_operand(context.scratch, "norm.output", format, x.rows(), x.cols(), Sides::rows);
  again.all = (format.is_scaled() ? context.scratch : context.kept())
                  .allocate("all tokens", format.dtype, {context.tokens(), x.cols()});
  return again;
}

void Norm::start_again(const Context& context, Tensor x, const OperandFormat& format, const NormStatistics& statistics,
                       Again& again) const {
  if (!again.all) return;
  if (!again.is_made) write(context, x, format, again.own, statistics);
  again.call = context.tensor.group->all_gather(context.stream, again.own.rows, again.all);
}

ops::Operand Norm::output_again(const Context& context, Tensor x, const OperandFormat& format,
                                const NormStatistics& statistics, const Again& again) const {
  if (again.all) {
    again.call.wait(context.stream);
    return with_columns(context, format, ops::Operand(again.all, {}, again.own.slot));
  }
  if (again.is_made) return again.own;
  const ops::Operand y = allocate_operand(context, "norm.output", format, x.rows(), x.cols(), Sides::columns);
  write(context, x, format, y, statistics);
  return y;
}

void Norm::write(const Context& context, Tensor x, const OperandFormat& format, const ops::Operand& y,
                 const NormStatistics& statistics) const {
  write_operand(context, format, y, [&](const ops::Operand& out) {
    ops::norm_forward(context.stream, {.kind = kind_,
                                       .x = x,
                                       .weight = weight_.weight,
                                       .bias = bias_.weight,
                                       .y = out,
                                       .mean = statistics.mean,
                                       .rstd = statistics.rstd,
                                       .epsilon = epsilon_});
  });
}

void Norm::backward(const Context& context, Tensor dy, Tensor x, const NormStatistics& statistics,
                    Tensor residual_gradient, Tensor dx, Tensor bias_gradient) const {
  const ArenaScope scope(context.scratch);
  const Tensor scratch =
      context.scratch.allocate("norm.partial_sums", main_, {ops::norm_backward_scratch(x.rows(), x.cols())});
  ops::norm_backward(context.stream, {.kind = kind_,
                                      .dy = dy,
                                      .x = x,
                                      .weight = weight_.weight,
                                      .mean = statistics.mean,
                                      .rstd = statistics.rstd,
                                      .residual_gradient = residual_gradient,
                                      .dx = dx,
                                      .dweight = weight_.gradient,
                                      .dbias = bias_.gradient,
                                      .dx_sums = bias_gradient,
                                      .scratch = scratch});
}

}  // namespace megalith::model
