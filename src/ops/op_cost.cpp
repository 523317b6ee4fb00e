#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/gemm.h"
#include "ops/norm.h"
#include "ops/optimizer.h"
#include "ops/rope.h"
#include "ops/step_scalars.h"
#include "ops/sum.h"

namespace megalith::ops {

namespace {

template <class... Tensors>
double bytes_of(const Tensors&... tensors) {
  return (static_cast<double>(tensors.bytes()) + ...);
}

std::string shape_of(const Tensor& tensor) {
  return fmt::format("{} {}", name_of(tensor.dtype), to_string(tensor.shape));
}

OpCost memory_cost(double bytes, const Tensor& tensor) {
  return {.kind = OpKind::memory, .bytes = bytes, .shape = shape_of(tensor)};
}

double gradient_bytes(const UpdateTiles& tiles) {
  return static_cast<double>(tiles.elements * size_of(main_dtype(tiles.weights)));
}

OpCost update_cost(double bytes, const UpdateTiles& tiles) {
  return {.bytes = bytes, .shape = fmt::format("{} parameters", tiles.elements)};
}

}  // namespace

OpObservation::OpObservation(Stream& stream, OpListener listener) : stream_(stream), listener_(std::move(listener)) {
  stream_.set_observer(&listener_);
}

OpObservation::~OpObservation() {
  stream_.set_observer(nullptr);
}

OpCost cost_of(const Gemm& args) {
  const auto m = static_cast<double>(args.c.rows());
  const auto n = static_cast<double>(args.c.cols());
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.cols();
  const double reads_c = args.beta != 0.0F ? 1.0 : 0.0;
  return {
      .kind = OpKind::product,
      .flops = 2.0 * m * n * static_cast<double>(k),
      .bytes = bytes_of(args.a, args.b, args.bias, args.addend, args.gelu_input) + (1.0 + reads_c) * bytes_of(args.c),
      .shape = fmt::format("{} {}x{}x{} {}{}{}{}{}{}", name_of(args.a.dtype), args.c.rows(), args.c.cols(), k,
                           args.transpose_a ? 't' : 'n', args.transpose_b ? 't' : 'n',
                           args.c.dtype == args.a.dtype ? "" : " to fp32", reads_c > 0.0 ? " accumulate" : "",
                           args.addend ? " addend" : "", args.gelu_input ? " gelu" : "")};
}

OpCost cost_of(const AttentionForward& args) {
  const int64_t queries = args.q.rows() / args.batch;
  const int64_t keys = args.k.rows() / args.batch;
  const int64_t seen = queries * (keys - queries) + queries * (queries + 1) / 2;  // what a causal mask leaves
  const int64_t products = 2;
  return {.kind = OpKind::attention,
          .flops = 2.0 * static_cast<double>(products * args.batch * args.q.cols() * seen),
          .bytes = bytes_of(args.q, args.k, args.v, args.out, args.log_sum_exp),
          .shape = fmt::format("{} {} x {} queries, {} keys, {}/{} heads of {}", name_of(args.q.dtype), args.batch,
                               queries, keys, args.heads, args.kv_heads, args.q.cols() / args.heads)};
}
OpCost cost_of(const AttentionBackward& args) {
  OpCost cost = cost_of(args.forward);
  cost.flops *= 2.5;  // five products instead of two
  cost.bytes += bytes_of(args.dout, args.dq, args.dk, args.dv);
  return cost;
}

OpCost cost_of(const GeluForward& args) {
  return memory_cost(bytes_of(args.x, args.y), args.x);
}
OpCost cost_of(const GeluBackward& args) {
  return memory_cost(bytes_of(args.dy, args.x, args.dx, args.dbias), args.x);
}
OpCost cost_of(const SwigluForward& args) {
  return memory_cost(bytes_of(args.gate_up, args.y), args.y);
}
OpCost cost_of(const SwigluBackward& args) {
  return memory_cost(bytes_of(args.dy, args.gate_up, args.dgate_up), args.dy);
}
OpCost cost_of(const CrossEntropy& args) {
  const double reads_and_writes = args.with_gradient ? 2.0 : 1.0;
  return memory_cost(reads_and_writes * bytes_of(args.logits) + bytes_of(args.targets, args.weights, args.losses),
                     args.logits);
}
OpCost cost_of(const CrossEntropyPart& args) {
  return memory_cost(bytes_of(args.logits, args.targets, args.statistics), args.logits);
}
OpCost cost_of(const CrossEntropyOfParts& args) {
  const double reads_and_writes = args.with_gradient ? 2.0 : 0.0;
  return memory_cost(
      reads_and_writes * bytes_of(args.logits) + bytes_of(args.targets, args.weights, args.losses, args.statistics),
      args.logits);
}
OpCost cost_of(const DropoutAdd& args) {
  return memory_cost(bytes_of(args.x, args.residual, args.y), args.x);
}
OpCost cost_of(const Fill& args) {
  return memory_cost(bytes_of(args.x), args.x);
}
OpCost cost_of(const Cast& args) {
  return memory_cost(bytes_of(args.x, args.y), args.x);
}
OpCost cost_of(const BiasGradient& args) {
  return memory_cost(bytes_of(args.dy, args.dbias), args.dy);
}
OpCost cost_of(const NormalInit& args) {
  return memory_cost(bytes_of(args.x), args.x);
}
// A row of a table is read for each token; of the positions, at most as often as there are rows.
OpCost cost_of(const EmbeddingForward& args) {
  const int64_t positions = std::min(args.out.rows(), args.positions_table ? args.positions_table.rows() : 0);
  const auto position_bytes = static_cast<double>(positions * args.out.cols() * size_of(args.out.dtype));
  return memory_cost(2.0 * bytes_of(args.out) + bytes_of(args.ids) + position_bytes, args.out);
}
// A row of the gradient is read and written for each token, at most as often as there are rows.
OpCost cost_of(const EmbeddingBackward& args) {
  const auto main = static_cast<double>(size_of(args.tokens_gradient.dtype));
  const auto rows = static_cast<double>(std::min(args.dout.rows(), args.tokens_gradient.rows()));
  const double positions = args.positions_gradient ? 2.0 * bytes_of(args.positions_gradient) : 0.0;
  return memory_cost(
      bytes_of(args.dout, args.ids) + 2.0 * rows * static_cast<double>(args.dout.cols()) * main + positions, args.dout);
}
OpCost cost_of(const OrderRows& args) {
  return memory_cost(bytes_of(args.given, args.order.keys, args.order.rows), args.given);
}
OpCost cost_of(const NormForward& args) {
  return memory_cost(bytes_of(args.x, args.weight, args.bias, args.y, args.mean, args.rstd), args.x);
}
OpCost cost_of(const NormBackward& args) {
  OpCost cost = memory_cost(bytes_of(args.dy, args.x, args.mean, args.rstd, args.residual_gradient, args.dx), args.x);
  if (args.residual_gradient) cost.shape += " residual";
  return cost;
}
OpCost cost_of(const Rope& args) {
  return memory_cost(2.0 * bytes_of(args.x), args.x);
}
OpCost cost_of(const SetStepScalars&) {
  return {};
}
OpCost cost_of(const SetNumber&) {
  return {};
}
OpCost cost_of(const WeighStep&) {
  return {};
}
OpCost cost_of(const SetUpdateScalars&) {
  return {};
}
OpCost cost_of(const GradientNorm& args) {
  return update_cost(gradient_bytes(args.tiles), args.tiles);
}
OpCost cost_of(const ClipGradients&) {
  return {};
}
// Reads the gradient; reads and writes both moments and the weights, which have the main dtype's bits in all.
OpCost cost_of(const AdamW& args) {
  return update_cost(7.0 * gradient_bytes(args.tiles), args.tiles);
}
OpCost cost_of(const Sum& args) {
  return memory_cost(bytes_of(args.x), args.x);
}

}  // namespace megalith::ops
