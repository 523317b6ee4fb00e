#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/endless.h"
#include "ops/gemm.h"
#include "ops/norm.h"
#include "ops/operands/quantize.h"
#include "ops/operands/scales.h"
#include "ops/optimizer.h"
#include "ops/rope.h"
#include "ops/step_scalars.h"
#include "ops/vocabulary/cross_entropy.h"
#include "ops/vocabulary/embedding.h"

#define MEGALITH_NO_CUDA(name, Arguments)                                                                             \
  void name(Stream&, const Arguments&) {                                                                              \
    user_error(#name " was asked for on a GPU, but this build of Megalith has no CUDA; use trainer.accelerator=cpu"); \
  }

namespace megalith::ops::cuda {

MEGALITH_NO_CUDA(gelu_forward, GeluForward)
MEGALITH_NO_CUDA(gelu_backward, GeluBackward)
MEGALITH_NO_CUDA(swiglu_forward, SwigluForward)
MEGALITH_NO_CUDA(swiglu_backward, SwigluBackward)
MEGALITH_NO_CUDA(attention_forward, AttentionForward)
MEGALITH_NO_CUDA(attention_backward, AttentionBackward)
MEGALITH_NO_CUDA(cross_entropy, CrossEntropy)
MEGALITH_NO_CUDA(cross_entropy_part, CrossEntropyPart)
MEGALITH_NO_CUDA(cross_entropy_of_parts, CrossEntropyOfParts)
MEGALITH_NO_CUDA(dropout_add, DropoutAdd)
MEGALITH_NO_CUDA(fill, Fill)
MEGALITH_NO_CUDA(cast, Cast)
MEGALITH_NO_CUDA(add, Add)
MEGALITH_NO_CUDA(bias_gradient, BiasGradient)
MEGALITH_NO_CUDA(normal_init, NormalInit)
MEGALITH_NO_CUDA(embedding_forward, EmbeddingForward)
MEGALITH_NO_CUDA(embedding_backward, EmbeddingBackward)
MEGALITH_NO_CUDA(gemm, Gemm)
MEGALITH_NO_CUDA(norm_forward, NormForward)
MEGALITH_NO_CUDA(norm_backward, NormBackward)
MEGALITH_NO_CUDA(quantize, Quantize)
MEGALITH_NO_CUDA(transpose, Transpose)
MEGALITH_NO_CUDA(inspect_amax, InspectAmax)
MEGALITH_NO_CUDA(update_scales, UpdateScales)
MEGALITH_NO_CUDA(set_update_scalars, SetUpdateScalars)
MEGALITH_NO_CUDA(gradient_norm, GradientNorm)
MEGALITH_NO_CUDA(clip_gradients, ClipGradients)
MEGALITH_NO_CUDA(adamw, AdamW)
MEGALITH_NO_CUDA(rope, Rope)
MEGALITH_NO_CUDA(order_rows, OrderRows)
MEGALITH_NO_CUDA(set_step_scalars, SetStepScalars)
MEGALITH_NO_CUDA(set_number, SetNumber)
MEGALITH_NO_CUDA(weigh_step, WeighStep)
MEGALITH_NO_CUDA(sum, Sum)

void compute_for_ever(Stream&) {
  user_error("work without end was asked for on a GPU, but this build of Megalith has no CUDA");
}

}  // namespace megalith::ops::cuda
