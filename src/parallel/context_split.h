#pragma once

#include <cstdint>

#include "parallel/placement/interval.h"

namespace megalith::parallel {

// How context-parallel ranks share the positions of a sample. It is cut into 2 x ranks blocks; a rank takes one from
// the front and its mirror image from the back (zigzag), so that under a causal mask all have the same work. A rank's
// own tokens are its two blocks in that order.
struct ContextSplit {
  int64_t length = 0;  // a multiple of 2 x ranks
  int64_t ranks = 1;
  int64_t rank = 0;

  int64_t block() const { return length / (2 * ranks); }
};

enum class Half { front, back };

// The positions of a half in the sample.
Interval positions_of(const ContextSplit& split, Half half);

}  // namespace megalith::parallel
