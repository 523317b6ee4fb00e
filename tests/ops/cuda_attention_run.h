#pragma once

#include "core/arena.h"
#include "ops/cuda/attention/attention_path.h"
#include "ops/cuda_attention_case.h"

namespace megalith::ops::testing {

// A block of a GPU's memory that begins as NaN, with as much before and behind it as a kernel could stray.
class GuardedBlock {
 public:
  GuardedBlock(Stream& stream, Arena& arena, const char* name, int64_t bytes);

  void* data() const { return static_cast<std::byte*>(block_.data) + kGuard; }
  // Nothing was written outside.
  bool is_intact() const;

 private:
  static constexpr int64_t kGuard = int64_t{1} << 15;

  Stream* stream_;
  Tensor block_;
};

// A matrix that begins as NaN.
class DeviceMatrix {
 public:
  DeviceMatrix(Stream& stream, Arena& arena, const char* name, DType dtype, int64_t rows, int64_t cols);

  const Tensor& tensor() const { return tensor_; }

  // Into the columns from `first` on.
  void write(const Values& values, int64_t first, int64_t cols);
  Values read(int64_t first, int64_t cols) const;
  Values read() const { return read(0, tensor_.cols()); }
  bool is_intact() const { return block_.is_intact(); }

 private:
  void upload(std::vector<std::byte>& bytes);
  std::vector<std::byte> download() const;

  Stream* stream_;
  GuardedBlock block_;
  Tensor tensor_;
};

// q, k and v are columns of one matrix where there are as many queries as keys, and so are their gradients.
class GpuAttention {
 public:
  GpuAttention(Stream& stream, const AttentionCase& c, DType dtype);

  const AttentionTensors& tensors() const { return tensors_; }

  // Without a path: as the operation chooses, and recorded. Empty if cuDNN refuses.
  Named run(const cuda::AttentionPath* path, bool deterministic);
  // Nothing was written outside the tensors.
  bool is_intact() const;

 private:
  void run_as_training_does(const std::function<void()>& body);
  int64_t first_kv_col() const { return case_.is_square() ? case_.q_cols() : 0; }
  const DeviceMatrix& dkv() const { return case_.is_square() ? dq_ : dkv_; }

  Stream& stream_;
  AttentionCase case_;
  Arena arena_;
  DeviceMatrix q_, kv_, out_, log_sum_exp_, dout_, dq_, dkv_, scratch_;
  AttentionTensors tensors_;
};

}  // namespace megalith::ops::testing
