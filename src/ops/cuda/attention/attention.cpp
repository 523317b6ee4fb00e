#include "ops/attention.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/cuda/check.h"
#include "ops/cuda/attention/attention_path.h"
#include "ops/cuda/attention/cudnn_attention.h"
#include "ops/cuda/gemm/libraries.h"
#include "ops/cuda/launch_args.h"

namespace megalith::ops::cuda {

namespace {

// Refuses what kernels, which count in 32 bits, and grids cannot hold.
void check_limits(const AttentionShape& shape, const AttentionForward& args) {
  constexpr int64_t kMaxGrid = 65535;
  constexpr int64_t kMost = int64_t{1} << 30;
  element_of(shape.dtype);  // refuses fp64
  MEGALITH_CHECK(shape.batch <= kMaxGrid && shape.heads <= kMaxGrid && shape.key_length <= kMost &&
                     shape.head_dim <= kMaxGenericDim,
                 "attention of batch {}, heads {}, length {}, head_dim {}", shape.batch, shape.heads, shape.key_length,
                 shape.head_dim);
  MEGALITH_CHECK(args.head_offset + shape.heads <= kMost && args.dropout_keys <= kMost,
                 "dropout of heads from {} on, {} keys of {}", args.head_offset, shape.key_length, args.dropout_keys);
}

const AttentionForward& forward_of(const AttentionForward& args) {
  return args;
}
const AttentionForward& forward_of(const AttentionBackward& args) {
  return args.forward;
}

template <class Args>
AttentionShape limited_shape(const Args& args) {
  const AttentionShape shape = shape_of(forward_of(args));
  check_limits(shape, forward_of(args));
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
  AttentionTraits traits = traits_of(args.forward, shape);
  traits.is_aligned = traits.is_aligned && is_aligned({args.dout, args.dq, args.dk, args.dv});
  return traits;
}

template <class T>
AttentionRows<T> rows_of(const Tensor& tensor) {
  return {static_cast<T*>(tensor.data), tensor.row_stride};
}

AttentionDropout launch_dropout(const AttentionForward& args, const AttentionShape& shape) {
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
          .document_starts = args.document_starts ? args.document_starts.as<int32_t>() : nullptr,
          .dropout = launch_dropout(args, shape)};
}

// Scratch begins with one number per query and head.
int64_t dq_sums_offset(const AttentionShape& shape) {
  constexpr int64_t kAlignment = 64;
  return round_up(shape.batch * shape.heads * shape.query_length, kAlignment);
}

template <class T>
AttentionBackwardLaunch<T> launch_of(const AttentionBackward& args, const AttentionShape& shape) {
  AttentionBackwardLaunch<T> launch{launch_of<T>(args.forward, shape)};
  launch.dout = rows_of<const T>(args.dout);
  launch.dq = rows_of<T>(args.dq);
  launch.dk = rows_of<T>(args.dk);
  launch.dv = rows_of<T>(args.dv);
  launch.delta = args.forward.scratch.as<float>();
  if (!args.deterministic) launch.dq_sums = launch.delta + dq_sums_offset(shape);
  return launch;
}

template <class Args>
bool try_on(AttentionPath path, Stream& stream, const Args& args, const AttentionShape& shape) {
  if (path == AttentionPath::cudnn) return libraries_of(stream).cudnn_attention->run(args, shape);
  const auto native = static_cast<cudaStream_t>(stream.native());
  cudaError_t status = cudaSuccess;
  if (path == AttentionPath::tensor_cores) {
    status = launch_tensor_cores(launch_of<Bf16Bits>(args, shape), native);
  } else if (shape.dtype == DType::bf16) {
    status = launch_generic(launch_of<Bf16Bits>(args, shape), native);
  } else {
    status = launch_generic(launch_of<float>(args, shape), native);
  }
  megalith::cuda::check(status, "it could not be launched");
  return true;
}

const char* name_of(const AttentionForward&) {
  return "attention_forward";
}
const char* name_of(const AttentionBackward&) {
  return "attention_backward";
}

// Whichever library or kernel fails, the error tells of what.
template <class Args>
bool run_on(AttentionPath path, Stream& stream, const Args& args, const AttentionShape& shape) {
  try {
    return try_on(path, stream, args, shape);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    throw Error(ErrorKind::device, fmt::format("{} on {}: {}", name_of(args), cost_of(args).shape, error.what()),
                {.call = name_of(args)});
  }
}

template <class Args>
void run(Stream& stream, const Args& args) {
  const AttentionShape shape = limited_shape(args);
  const AttentionTraits traits = traits_of(args, shape);
  if (run_on(attention_path(traits), stream, args, shape)) return;
  run_on(own_attention_path(traits), stream, args, shape);
}

// A path takes what the choice would give it, and whatever it would give a faster one.
template <class Args>
bool run_checked(AttentionPath path, Stream& stream, const Args& args) {
  check(Contract(name_of(args), stream.device(), stream.pool().threads()), args);
  const AttentionShape shape = limited_shape(args);
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
