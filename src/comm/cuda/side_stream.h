#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/check.h"

namespace megalith::comm {

// A stream beside the one that computes. Its kernels go first: other ranks wait for what they bring.
class SideStream {
 public:
  SideStream() {
    int lowest = 0;
    int highest = 0;
    cuda::check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for stream priorities");
    cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest), "making a GPU stream");
  }
  ~SideStream() { cudaStreamDestroy(stream_); }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  cudaStream_t native() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A point on a CUDA stream that other streams can wait for and the host can ask about.
class CudaEvent {
 public:
  explicit CudaEvent(cudaStream_t stream) {
    cuda::check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making a GPU event");
    cuda::check(cudaEventRecord(event_, stream), "recording a GPU event");
  }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void order_before(cudaStream_t stream) const {
    cuda::check(cudaStreamWaitEvent(stream, event_, 0), "ordering GPU streams");
  }
  bool reached() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    cuda::check(status, "asking for a GPU event");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace megalith::comm
