#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Between the entry of attention (tensors, checks; C++20) and its kernels (C++17): raw pointers and sizes. Launchers
// are asynchronous on `stream` and return the error of the launch.

namespace megalith::ops::cuda {

// The rows of a (batch * length, heads * dim) matrix, `stride` elements apart.
template <class T>
struct AttentionRows {
  T* data = nullptr;
  int64_t stride = 0;
};

// The random draws of attention dropout; none if threshold is 0.
struct AttentionDropout {
  uint32_t threshold = 0;
  float factor = 1.0F;    // 1 / (1 - p)
  uint64_t site_key = 0;  // mix_key(seed, site)
  const uint64_t* step = nullptr;
  const int64_t* sample_ids = nullptr;
  int32_t head_offset = 0;
  int32_t keys = 0;  // of a whole sample
};

template <class T>
struct AttentionForwardLaunch {
  AttentionRows<const T> q, k, v;
  AttentionRows<T> out;
  AttentionRows<float> log_sum_exp;  // (batch * heads, queries)
  int32_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, dim = 0, query_offset = 0;
  float scale = 0.0F;
  const int32_t* document_starts = nullptr;  // null: a sample is one document
  AttentionDropout dropout;
};

// Of the forward pass whose outputs it reads.
template <class T>
struct AttentionBackwardLaunch : AttentionForwardLaunch<T> {
  AttentionRows<const T> dout;
  AttentionRows<T> dq, dk, dv;
  float* delta = nullptr;    // scratch, (batch * heads, queries)
  float* dq_sums = nullptr;  // scratch, (batch * queries, heads * dim); null: sum in a fixed order
};

// The bits of a bf16.
using Bf16Bits = uint16_t;

// On the tensor cores: bf16, head_dim a multiple of 8 up to kMaxTensorCoreDim, rows and pointers aligned to 16 bytes.
constexpr int32_t kMaxTensorCoreDim = 128;
cudaError_t launch_tensor_cores(const AttentionForwardLaunch<Bf16Bits>& args, cudaStream_t stream);
// With dq_sums one kernel computes all gradients and adds to dq with atomics; without, dq has a kernel of its own.
cudaError_t launch_tensor_cores(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream);

// In fp32 arithmetic, any head_dim up to kMaxGenericDim.
constexpr int32_t kMaxGenericDim = 1024;
cudaError_t launch_generic(const AttentionForwardLaunch<float>& args, cudaStream_t stream);
cudaError_t launch_generic(const AttentionForwardLaunch<Bf16Bits>& args, cudaStream_t stream);
cudaError_t launch_generic(const AttentionBackwardLaunch<float>& args, cudaStream_t stream);
cudaError_t launch_generic(const AttentionBackwardLaunch<Bf16Bits>& args, cudaStream_t stream);

}  // namespace megalith::ops::cuda
