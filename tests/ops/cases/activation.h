#pragma once

#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

struct ActivationCase {
  int64_t rows, cols, gap;
};

Runner run_gelu(const ActivationCase& c);

}  // namespace megalith::ops::testing
