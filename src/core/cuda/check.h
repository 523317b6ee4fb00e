#pragma once

#include <string>

#include "core/error.h"

namespace megalith::cuda {

// Throws a device error that begins with `what` unless `status` (a cudaError_t) is success.
void check(int status, const char* what);

}  // namespace megalith::cuda
