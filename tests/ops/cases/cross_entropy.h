#pragma once

#include "ops/cases/op_case.h"

namespace megalith::ops::testing {

struct CrossEntropyCase {
  int64_t rows, vocabulary, padded;
  int64_t gap = 0;
};
// Ranks that divide the columns, one after the other on one device.
struct CrossEntropyPartsCase {
  int64_t rows, vocabulary, ranks, cols;  // cols: of a rank
  int64_t gap = 0;

  CrossEntropyCase whole() const { return {rows, vocabulary, ranks * cols, gap}; }
};

Runner run_cross_entropy(const CrossEntropyCase& c, bool with_gradient);
Reference naive_cross_entropy(const CrossEntropyCase& c, bool with_gradient);
// Some rows are ignored.
Named inputs_of(const CrossEntropyCase& c);

// The losses are those of the first rank, from which no other may differ.
Runner run_parts(const CrossEntropyPartsCase& c, bool with_gradient);

}  // namespace megalith::ops::testing
