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

namespace megalith::ops::cuda {

namespace {
[[noreturn]] void refuse(const char* operation) {
  user_error("{} was asked for on a GPU, but this build of Megalith has no CUDA; use trainer.accelerator=cpu",
             operation);
}
}  // namespace

void gelu_forward(Stream&, const GeluForward&) {
  refuse("gelu_forward");
}
void gelu_backward(Stream&, const GeluBackward&) {
  refuse("gelu_backward");
}
void swiglu_forward(Stream&, const SwigluForward&) {
  refuse("swiglu_forward");
}
void swiglu_backward(Stream&, const SwigluBackward&) {
  refuse("swiglu_backward");
}
void attention_forward(Stream&, const AttentionForward&) {
  refuse("attention_forward");
}
void attention_backward(Stream&, const AttentionBackward&) {
  refuse("attention_backward");
}
void cross_entropy(Stream&, const CrossEntropy&) {
  refuse("cross_entropy");
}
void cross_entropy_part(Stream&, const CrossEntropyPart&) {
  refuse("cross_entropy_part");
}
void cross_entropy_of_parts(Stream&, const CrossEntropyOfParts&) {
  refuse("cross_entropy_of_parts");
}
void dropout_add(Stream&, const DropoutAdd&) {
  refuse("dropout_add");
}
void fill(Stream&, const Fill&) {
  refuse("fill");
}
void cast(Stream&, const Cast&) {
  refuse("cast");
}
void bias_gradient(Stream&, const BiasGradient&) {
  refuse("bias_gradient");
}
void normal_init(Stream&, const NormalInit&) {
  refuse("normal_init");
}
void embedding_forward(Stream&, const EmbeddingForward&) {
  refuse("embedding_forward");
}
void embedding_backward(Stream&, const EmbeddingBackward&) {
  refuse("embedding_backward");
}
void order_rows(Stream&, const OrderRows&) {
  refuse("order_rows");
}
void gemm(Stream&, const Gemm&) {
  refuse("gemm");
}
void norm_forward(Stream&, const NormForward&) {
  refuse("norm_forward");
}
void norm_backward(Stream&, const NormBackward&) {
  refuse("norm_backward");
}
void set_step_scalars(Stream&, const SetStepScalars&) {
  refuse("set_step_scalars");
}
void set_number(Stream&, const SetNumber&) {
  refuse("set_number");
}
void weigh_step(Stream&, const WeighStep&) {
  refuse("weigh_step");
}
void set_update_scalars(Stream&, const SetUpdateScalars&) {
  refuse("set_update_scalars");
}
void gradient_norm(Stream&, const GradientNorm&) {
  refuse("gradient_norm");
}
void clip_gradients(Stream&, const ClipGradients&) {
  refuse("clip_gradients");
}
void sum(Stream&, const Sum&) {
  refuse("sum");
}
void adamw(Stream&, const AdamW&) {
  refuse("adamw");
}
void rope(Stream&, const Rope&) {
  refuse("rope");
}

}  // namespace megalith::ops::cuda
