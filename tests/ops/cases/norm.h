#pragma once

#include "ops/cases/op_case.h"
#include "ops/norm.h"

namespace megalith::ops::testing {

struct NormCase {
  NormKind kind;
  int64_t rows, cols, gap;

  bool is_layer() const { return kind == NormKind::layer_norm; }
};

Runner run_forward(const NormCase& c);
Reference naive_forward(const NormCase& c);
Named inputs_of(const NormCase& c);

}  // namespace megalith::ops::testing
