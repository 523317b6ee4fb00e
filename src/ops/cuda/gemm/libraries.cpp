#include "ops/cuda/gemm/libraries.h"

#include "core/cuda_runtime.h"
#include "ops/cuda/attention/cudnn_attention.h"
#include "ops/cuda/gemm/cublas_check.h"

namespace megalith::ops::cuda {

Libraries::Libraries(Stream& stream)
    : workspace(megalith::cuda::acquire_memory(kWorkspaceBytes, "cuBLASLt workspace")),
      cudnn_attention(std::make_unique<CudnnAttention>(stream)) {
  check_cublas(cublasLtCreate(&cublas), "making a cuBLASLt handle");
}

Libraries::~Libraries() {
  if (cublas != nullptr) cublasLtDestroy(cublas);
  megalith::cuda::release_memory(workspace);
}

Libraries& libraries_of(Stream& stream) {
  std::shared_ptr<void>& slot = stream.libraries();
  if (!slot) slot = std::make_shared<Libraries>(stream);
  return *static_cast<Libraries*>(slot.get());
}

}  // namespace megalith::ops::cuda
