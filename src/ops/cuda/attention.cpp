#include "ops/attention.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/cuda/check.h"
#include "ops/cuda/attention_path.h"
#include "ops/cuda/check.h"
#include "ops/cuda/cudnn_attention.h"
#include "ops/cuda/libraries.h"

namespace megalith::ops::cuda {

namespace {

// What the checks of both directions have in common. The kernels count in 32 bits, and grids are bounded.
void check_shape(const AttentionShape& shape, double scale, const Tensor& document_starts,
                 const Tensor& document_bounds, const Dropout& dropout, const Tensor& scratch) {
  constexpr int64_t kMaxGrid = 65535;
  constexpr int64_t kMaxLength = int64_t{1} << 30;
  element_of(shape.dtype);  // refuses fp64
  MEGALITH_CHECK(shape.batch <= kMaxGrid && shape.heads <= kMaxGrid && shape.key_length <= kMaxLength &&
                     shape.head_dim <= kMaxGenericDim,
                 "attention of batch {}, heads {}, length {}, head_dim {}", shape.batch, shape.heads, shape.key_length,
                 shape.head_dim);
  MEGALITH_CHECK(scale > 0.0, "scale {}", scale);
  const int64_t rows = shape.batch * shape.query_length;
  if (document_starts) check_vector(document_starts, "document_starts", DType::i32, rows);
  if (document_bounds) check_vector(document_bounds, "document_bounds", DType::i32, shape.documents + 1);
  MEGALITH_CHECK(document_starts || !document_bounds, "document_bounds without document_starts");
  MEGALITH_CHECK(0.0 <= dropout.probability && dropout.probability < 1.0, "dropout probability {}",
                 dropout.probability);
  if (dropout.probability > 0.0) {
    MEGALITH_CHECK(dropout.step != nullptr && dropout.sample_ids.device == Device::cuda &&
                       dropout.sample_ids.dtype == DType::i64 && dropout.sample_ids.elements() == shape.batch,
                   "dropout of {} samples with {} ids", shape.batch, dropout.sample_ids.elements());
  }
  check_scratch(scratch, DType::f32, attention_scratch(Device::cuda, shape, 1));
}

// Of either direction: where its queries and heads stand in the whole.
template <class Args>
void check_place(const Args& args, const AttentionShape& shape) {
  constexpr int64_t kMost = int64_t{1} << 30;
  MEGALITH_CHECK(args.query_offset >= 0 && args.query_offset + shape.query_length <= shape.key_length,
                 "queries [{}, {} + {}) of {} keys", args.query_offset, args.query_offset, shape.query_length,
                 shape.key_length);
  MEGALITH_CHECK(0 <= args.head_offset && args.head_offset + shape.heads <= kMost && args.dropout_keys <= kMost &&
                     (args.dropout_keys == 0 || args.dropout_keys >= shape.key_length),
                 "dropout of heads from {} on, {} keys of {}", args.head_offset, shape.key_length, args.dropout_keys);
}

int64_t documents_in(const Tensor& document_bounds) {
  return document_bounds ? document_bounds.elements() - 1 : 0;
}

AttentionShape checked_shape(const AttentionForward& args) {
  const AttentionShape shape{.dtype = args.q.dtype,
                             .batch = args.batch,
                             .heads = args.heads,
                             .kv_heads = args.kv_heads,
                             .query_length = div_exact(args.q.rows(), args.batch),
                             .key_length = div_exact(args.k.rows(), args.batch),
                             .head_dim = div_exact(args.q.cols(), args.heads),
                             .documents = documents_in(args.document_bounds)};
  const int64_t kv_cols = args.heads / div_exact(args.heads, args.kv_heads) * shape.head_dim;
  check_matrix(args.q, "q", shape.dtype, args.q.rows(), args.q.cols());
  check_matrix(args.k, "k", shape.dtype, args.k.rows(), kv_cols);
  check_matrix(args.v, "v", shape.dtype, args.k.rows(), kv_cols);
  check_matrix(args.out, "out", shape.dtype, args.q.rows(), args.q.cols());
  check_matrix(args.log_sum_exp, "log_sum_exp", DType::f32, args.batch * args.heads, shape.query_length);
  check_shape(shape, args.scale, args.document_starts, args.document_bounds, args.dropout, args.scratch);
  check_place(args, shape);
  return shape;
}

AttentionShape checked_shape(const AttentionBackward& args) {
  const int64_t rows = args.q.rows();
  const AttentionShape shape{.dtype = args.q.dtype,
                             .batch = args.batch,
                             .heads = args.heads,
                             .kv_heads = args.kv_heads,
                             .query_length = div_exact(rows, args.batch),
                             .key_length = div_exact(args.k.rows(), args.batch),
                             .head_dim = div_exact(args.q.cols(), args.heads),
                             .documents = documents_in(args.document_bounds)};
  const int64_t kv_cols = args.heads / div_exact(args.heads, args.kv_heads) * shape.head_dim;
  check_matrix(args.q, "q", shape.dtype, rows, args.q.cols());
  check_matrix(args.dq, "dq", shape.dtype, rows, args.q.cols());
  check_matrix(args.out, "out", shape.dtype, rows, args.q.cols());
  check_matrix(args.dout, "dout", shape.dtype, rows, args.q.cols());
  check_matrix(args.k, "k", shape.dtype, args.k.rows(), kv_cols);
  check_matrix(args.v, "v", shape.dtype, args.k.rows(), kv_cols);
  check_matrix(args.dk, "dk", shape.dtype, args.k.rows(), kv_cols);
  check_matrix(args.dv, "dv", shape.dtype, args.k.rows(), kv_cols);
  check_matrix(args.log_sum_exp, "log_sum_exp", DType::f32, args.batch * args.heads, shape.query_length);
  check_shape(shape, args.scale, args.document_starts, args.document_bounds, args.dropout, args.scratch);
  check_place(args, shape);
  return shape;
}

bool is_aligned(std::initializer_list<Tensor> tensors) {
  constexpr int64_t kBytes = 16;
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
    return reinterpret_cast<uintptr_t>(tensor.data) % kBytes == 0 &&
           tensor.row_stride * size_of(tensor.dtype) % kBytes == 0;
  });
}

AttentionTraits traits_of(const AttentionForward& args, const AttentionShape& shape) {
  return {.dtype = shape.dtype,
          .head_dim = shape.head_dim,
          .is_aligned = is_aligned({args.q, args.k, args.v, args.out}),
          .has_dropout = args.dropout.probability > 0.0,
          .has_documents = static_cast<bool>(args.document_starts),
          .has_bounds = static_cast<bool>(args.document_bounds),
          .queries = shape.query_length,
          .is_square = shape.query_length == shape.key_length,
          .ends_together = args.query_offset + shape.query_length == shape.key_length};
}

AttentionTraits traits_of(const AttentionBackward& args, const AttentionShape& shape) {
  return {.is_backward = true,
          .dtype = shape.dtype,
          .head_dim = shape.head_dim,
          .is_aligned = is_aligned({args.q, args.k, args.v, args.out, args.dout, args.dq, args.dk, args.dv}),
          .has_dropout = args.dropout.probability > 0.0,
          .has_documents = static_cast<bool>(args.document_starts),
          .has_bounds = static_cast<bool>(args.document_bounds),
          .queries = shape.query_length,
          .is_square = shape.query_length == shape.key_length,
          .ends_together = args.query_offset + shape.query_length == shape.key_length};
}

template <class T>
AttentionRows<T> rows_of(const Tensor& tensor) {
  return {static_cast<T*>(tensor.data), tensor.row_stride};
}

const int32_t* starts_of(const Tensor& document_starts) {
  return document_starts ? document_starts.as<int32_t>() : nullptr;
}

template <class Args>
AttentionDropout launch_dropout(const Args& args, const AttentionShape& shape) {
  const Dropout& dropout = args.dropout;
  if (dropout.probability == 0.0) return {};
  return {.threshold = dropout_threshold(dropout.probability),
          .factor = static_cast<float>(1.0 / (1.0 - dropout.probability)),
          .site_key = mix_key(dropout.seed, dropout.site),
          .step = dropout.step,
          .sample_ids = dropout.sample_ids.as<int64_t>(),
          .head_offset = static_cast<int32_t>(args.head_offset),
          .keys = static_cast<int32_t>(args.dropout_keys == 0 ? shape.key_length : args.dropout_keys)};
}

template <class T>
AttentionForwardLaunch<T> launch_of(const AttentionForward& args, const AttentionShape& shape) {
  return {.q = rows_of<const T>(args.q),
          .k = rows_of<const T>(args.k),
          .v = rows_of<const T>(args.v),
          .out = rows_of<T>(args.out),
          .log_sum_exp = rows_of<float>(args.log_sum_exp),
          .batch = static_cast<int32_t>(shape.batch),
          .heads = static_cast<int32_t>(shape.heads),
          .kv_heads = static_cast<int32_t>(shape.kv_heads),
          .queries = static_cast<int32_t>(shape.query_length),
          .keys = static_cast<int32_t>(shape.key_length),
          .dim = static_cast<int32_t>(shape.head_dim),
          .query_offset = static_cast<int32_t>(args.query_offset),
          .scale = static_cast<float>(args.scale),
          .document_starts = starts_of(args.document_starts),
          .dropout = launch_dropout(args, shape)};
}

// Scratch begins with one number per query and head.
int64_t dq_sums_offset(const AttentionShape& shape) {
  constexpr int64_t kAlignment = 64;
  return round_up(shape.batch * shape.heads * shape.query_length, kAlignment);
}

template <class T>
AttentionBackwardLaunch<T> launch_of(const AttentionBackward& args, const AttentionShape& shape) {
  return {.dout = rows_of<const T>(args.dout),
          .q = rows_of<const T>(args.q),
          .k = rows_of<const T>(args.k),
          .v = rows_of<const T>(args.v),
          .out = rows_of<const T>(args.out),
          .log_sum_exp = rows_of<const float>(args.log_sum_exp),
          .dq = rows_of<T>(args.dq),
          .dk = rows_of<T>(args.dk),
          .dv = rows_of<T>(args.dv),
          .delta = args.scratch.as<float>(),
          .dq_sums = args.deterministic ? nullptr : args.scratch.as<float>() + dq_sums_offset(shape),
          .batch = static_cast<int32_t>(shape.batch),
          .heads = static_cast<int32_t>(shape.heads),
          .kv_heads = static_cast<int32_t>(shape.kv_heads),
          .queries = static_cast<int32_t>(shape.query_length),
          .keys = static_cast<int32_t>(shape.key_length),
          .dim = static_cast<int32_t>(shape.head_dim),
          .query_offset = static_cast<int32_t>(args.query_offset),
          .scale = static_cast<float>(args.scale),
          .document_starts = starts_of(args.document_starts),
          .dropout = launch_dropout(args, shape)};
}

cudaStream_t native(Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

bool run_on(AttentionPath path, Stream& stream, const AttentionForward& args, const AttentionShape& shape) {
  if (path == AttentionPath::cudnn) return libraries_of(stream).cudnn_attention->forward(args, shape);
  cudaError_t status = cudaSuccess;
  if (path == AttentionPath::tensor_cores) {
    status = launch_tensor_core_forward(launch_of<Bf16Bits>(args, shape), native(stream));
  } else if (shape.dtype == DType::bf16) {
    status = launch_generic_forward(launch_of<Bf16Bits>(args, shape), native(stream));
  } else {
    status = launch_generic_forward(launch_of<float>(args, shape), native(stream));
  }
  megalith::cuda::check(status, "launching attention");
  return true;
}

bool run_on(AttentionPath path, Stream& stream, const AttentionBackward& args, const AttentionShape& shape) {
  if (path == AttentionPath::cudnn) return libraries_of(stream).cudnn_attention->backward(args, shape);
  cudaError_t status = cudaSuccess;
  if (path == AttentionPath::tensor_cores) {
    status = launch_tensor_core_backward(launch_of<Bf16Bits>(args, shape), native(stream));
  } else if (shape.dtype == DType::bf16) {
    status = launch_generic_backward(launch_of<Bf16Bits>(args, shape), native(stream));
  } else {
    status = launch_generic_backward(launch_of<float>(args, shape), native(stream));
  }
  megalith::cuda::check(status, "launching the backward pass of attention");
  return true;
}

template <class Args>
void run(Stream& stream, const Args& args) {
  const AttentionShape shape = checked_shape(args);
  const AttentionTraits traits = traits_of(args, shape);
  if (run_on(attention_path(traits), stream, args, shape)) return;
  run_on(own_attention_path(traits), stream, args, shape);
}

// A path takes what the choice would give it, and whatever it would give a faster one.
template <class Args>
bool run_checked(AttentionPath path, Stream& stream, const Args& args) {
  const AttentionShape shape = checked_shape(args);
  const AttentionTraits traits = traits_of(args, shape);
  MEGALITH_CHECK(path == attention_path(traits) || path >= own_attention_path(traits),
                 "this attention cannot run on path {}", static_cast<int>(path));
  return run_on(path, stream, args, shape);
}

}  // namespace

bool attention_forward_on(AttentionPath path, Stream& stream, const AttentionForward& args) {
  return run_checked(path, stream, args);
}
bool attention_backward_on(AttentionPath path, Stream& stream, const AttentionBackward& args) {
  return run_checked(path, stream, args);
}

void attention_forward(Stream& stream, const AttentionForward& args) {
  run(stream, args);
}
void attention_backward(Stream& stream, const AttentionBackward& args) {
  run(stream, args);
}

}  // namespace megalith::ops::cuda
