#pragma once

#include "core/rng.h"
#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

struct DropoutCase {
  int64_t batch, length, cols;
  double probability;
  bool residual;
  int64_t gap = 0;
  bool placed = false;  // samples begin at positions of their own
  int64_t first_row = 0;
  int64_t some_rows = 0;  // 0: all

  int64_t rows() const { return some_rows == 0 ? batch * length : some_rows; }
};

Runner run_dropout(const DropoutCase& c);
Named inputs_of(const DropoutCase& c);

}  // namespace megalith::ops::testing
