#pragma once

#include <nccl.h>

#include <string>

#include "core/error.h"

namespace megalith::comm {

// What went wrong, in NCCL's own words; `comm` may be null.
inline std::string describe_nccl(ncclResult_t status, ncclComm_t comm) {
  const char* details = ncclGetLastError(comm);
  return fmt::format("{} ({})", ncclGetErrorString(status), details != nullptr ? details : "no details");
}

inline void check_nccl(ncclResult_t status, const char* what, ncclComm_t comm = nullptr) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  fail(ErrorKind::comm, "{}: {}", what, describe_nccl(status, comm));
}

}  // namespace megalith::comm
