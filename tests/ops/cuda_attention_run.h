#pragma once

#include "core/arena.h"
#include "ops/cuda/attention_path.h"
#include "ops/cuda_attention_case.h"

namespace megalith::ops::testing {

// A matrix in the GPU's memory that begins as NaN.
class DeviceMatrix {
 public:
  DeviceMatrix(Stream& stream, Arena& arena, const char* name, DType dtype, int64_t rows, int64_t cols);

  const Tensor& tensor() const { return tensor_; }

  // Into the columns from `first` on.
  void write(const Values& values, int64_t first, int64_t cols);
  Values read(int64_t first, int64_t cols) const;
  Values read() const { return read(0, tensor_.cols()); }

 private:
  void upload(std::vector<std::byte>& bytes);
  std::vector<std::byte> download() const;

  Stream* stream_;
  Tensor tensor_;
};

// q, k and v are columns of one matrix where there are as many queries as keys, and so are their gradients.
class GpuAttention {
 public:
  GpuAttention(Stream& stream, const AttentionCase& c, DType dtype);

  const AttentionTensors& tensors() const { return tensors_; }

  // Without a path: as the operation chooses. Empty if cuDNN refuses.
  Named run(const cuda::AttentionPath* path, bool deterministic);

 private:
  int64_t first_kv_col() const { return case_.is_square() ? case_.q_cols() : 0; }
  const DeviceMatrix& dkv() const { return case_.is_square() ? dq_ : dkv_; }

  Stream& stream_;
  AttentionCase case_;
  Arena arena_;
  DeviceMatrix q_, kv_, out_, log_sum_exp_, dout_, dq_, dkv_, scratch_;
  AttentionTensors tensors_;
};

}  // namespace megalith::ops::testing
