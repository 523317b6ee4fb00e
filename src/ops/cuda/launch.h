#pragma once

#include <string>

#include "ops/operands/operand.h"

namespace megalith::ops::cuda {

// Throws a device error, naming the operation and what it worked on, where a launch was refused. It does not wait: what
// goes wrong while a kernel runs surfaces in Stream::wait().
void check_launch(const char* operation, const Tensor& on);
void check_launch(const char* operation, const char* unit, int64_t count);

}  // namespace megalith::ops::cuda
