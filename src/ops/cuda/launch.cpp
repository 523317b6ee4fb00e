#include "ops/cuda/launch.h"

#include <cuda_runtime_api.h>

namespace megalith::ops::cuda {

namespace {

template <class Describe>
void check(const char* operation, const Describe& describe) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) [[likely]]
    return;
  throw Error(ErrorKind::device,
              fmt::format("{} on {} could not be launched: {} ({})", operation, describe(), cudaGetErrorString(status),
                          cudaGetErrorName(status)),
              {.call = operation});
}

}  // namespace

void check_launch(const char* operation, const Tensor& on) {
  check(operation, [&] { return fmt::format("{} {}", to_string(on.shape), name_of(on.dtype)); });
}

void check_launch(const char* operation, const char* unit, int64_t count) {
  check(operation, [&] { return fmt::format("{} {}", count, unit); });
}

}  // namespace megalith::ops::cuda
