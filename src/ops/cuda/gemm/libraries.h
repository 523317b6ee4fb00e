#pragma once

#include <cublasLt.h>

#include <memory>

#include "core/stream.h"
#include "ops/cuda/gemm/gemm_choices.h"

namespace megalith::ops::cuda {

class CudnnAttention;

// What the operations of a stream keep from call to call.
struct Libraries {
  explicit Libraries(Stream& stream);
  ~Libraries();
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  cublasLtHandle_t cublas = nullptr;
  // NVIDIA's advice for Hopper; counted among what libraries take outside the arenas.
  static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
  void* workspace = nullptr;
  GemmChoices gemm_choices;
  bool tuning = false;
  std::unique_ptr<CudnnAttention> cudnn_attention;
};

// Made on first use.
Libraries& libraries_of(Stream& stream);

}  // namespace megalith::ops::cuda
