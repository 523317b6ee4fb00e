#pragma once

#include "ops/attention.h"
#include "ops/cuda/attention/attention_launch.h"

namespace megalith::ops::cuda {

// The three implementations of attention on a GPU, from the fastest to the most general.
enum class AttentionPath { cudnn, tensor_cores, generic };

// What the choice depends on.
struct AttentionTraits {
  DType dtype = DType::f32;
  int64_t head_dim = 0;
  bool is_aligned = false;  // rows and pointers of all matrices, to 16 bytes
  bool has_dropout = false;
  bool has_documents = false;
  bool has_bounds = false;  // of the documents
  int64_t queries = 0;
  bool is_square = false;      // as many queries as keys
  bool ends_together = false;  // the last query stands at the last key
};

// Without cuDNN.
constexpr AttentionPath own_attention_path(const AttentionTraits& traits) {
  const bool fits_tensor_cores = traits.dtype == DType::bf16 && traits.is_aligned && traits.head_dim % 8 == 0 &&
                                 traits.head_dim <= kMaxTensorCoreDim;
  return fits_tensor_cores ? AttentionPath::tensor_cores : AttentionPath::generic;
}

// cuDNN may still refuse the shape. It builds a graph for each, which fewer queries than keys are worth where they are
// many: generation meets another number of keys with each token. Its dropout draws from another generator, and it finds
// documents by their bounds.
constexpr AttentionPath attention_path(const AttentionTraits& traits) {
  constexpr int64_t kMaxCudnnDim = 256;
  constexpr int64_t kMinQueries = 64;
  constexpr int64_t kDocumentDim = 16;      // cuDNN's frontend knows of wrong results for others
  constexpr int64_t kMaxDocumentDim = 128;  // gradients of larger ones are wrong or NaN
  const bool fits_mask = traits.is_square || (traits.ends_together && traits.queries >= kMinQueries);
  const bool fits_documents =
      !traits.has_documents || (traits.has_bounds && traits.is_square && traits.head_dim % kDocumentDim == 0 &&
                                traits.head_dim <= kMaxDocumentDim);
  const bool fits_cudnn = traits.dtype == DType::bf16 && traits.is_aligned && traits.head_dim % 8 == 0 &&
                          traits.head_dim <= kMaxCudnnDim && fits_mask && !traits.has_dropout && fits_documents;
  return fits_cudnn ? AttentionPath::cudnn : own_attention_path(traits);
}

// Run on the given path. False, and nothing was done: cuDNN refused.
bool attention_forward_on(AttentionPath path, Stream& stream, const AttentionForward& args);
bool attention_backward_on(AttentionPath path, Stream& stream, const AttentionBackward& args);

}  // namespace megalith::ops::cuda
