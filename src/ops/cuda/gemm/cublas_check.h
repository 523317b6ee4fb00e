#pragma once

#include <cublasLt.h>

#include <string>

#include "core/error.h"

namespace megalith::ops::cuda {

inline void check_cublas(cublasStatus_t status, const std::string& what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(ErrorKind::device, "{}: {}", what, cublasLtGetStatusString(status));
}

}  // namespace megalith::ops::cuda
