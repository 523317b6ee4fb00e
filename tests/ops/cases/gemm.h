#pragma once

#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

struct GemmCase {
  int64_t m, n, k;
  bool transpose_a = false;
  bool transpose_b = false;
  float beta = 0.0F;
  bool bias = false;
  int64_t gap = 0;
  bool main_c = false;  // c in the main dtype, as a weight gradient has it
  bool addend = false;
  bool gelu = false;
};

Runner run_gemm(const GemmCase& c);
Reference naive_gemm(const GemmCase& c);
Named inputs_of(const GemmCase& c);

}  // namespace megalith::ops::testing
