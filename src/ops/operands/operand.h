#pragma once

#include "core/tensor.h"

namespace megalith::ops {

// What an fp8 operand is scaled by, in the memory of the device: it holds x * scale, and a GEMM multiplies its result
// by the inverse. Both are powers of two, so that neither rounds.
struct Slot {
  const float* scale = nullptr;
  const float* inverse = nullptr;
  // The bits of the largest |x| so far. As bits a maximum depends on no order, and infinity and NaN, which a cast to
  // fp8 hides, are the largest. Null: nobody asks.
  uint32_t* amax = nullptr;

  explicit operator bool() const { return scale != nullptr; }
};

// A matrix (N,C) in the form in which GEMMs read it: what makes it writes it so, and no GEMM converts. A format whose
// GEMMs transpose by themselves (bf16, fp32) needs the rows alone, so that any tensor is an operand. fp8 GEMMs do not
// transpose: an operand that is read both ways round has columns as well.
struct Operand {
  Tensor rows;     // (N,C); absent where no GEMM reads them
  Tensor columns;  // (C,N), the same elements transposed; absent where no GEMM reads them
  Slot slot;       // of fp8. Without rows and columns only the amax is taken

  Operand() = default;
  Operand(const Tensor& matrix) : rows(matrix) {}
  Operand(const Tensor& as_rows, const Tensor& as_columns, const Slot& scaled_by)
      : rows(as_rows), columns(as_columns), slot(scaled_by) {}

  explicit operator bool() const { return rows || columns; }
  int64_t bytes() const { return rows.bytes() + columns.bytes(); }
};

}  // namespace megalith::ops
