#pragma once

#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

struct EmbeddingCase {
  int64_t batch, length, vocabulary, cols, offset;
  bool positions;
  int64_t gap = 0;
  int64_t whole = 0;  // the vocabulary that the table is a part of; 0: it is the whole
  int64_t first_id = 0;

  bool is_part() const { return whole > 0; }
  int64_t rows() const { return batch * length; }
  int64_t position_rows() const { return offset + length + 1; }
};

// With "given_positions" in the inputs: those of the rows, in place of positions along the sample.
Runner run_backward(const EmbeddingCase& c);
Named inputs_of(const EmbeddingCase& c);

}  // namespace megalith::ops::testing
