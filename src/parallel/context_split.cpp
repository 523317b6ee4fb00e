#include "parallel/context_split.h"

#include "core/tensor.h"

namespace megalith::parallel {

Interval positions_of(const ContextSplit& split, Half half) {
  const int64_t block = div_exact(split.length, 2 * split.ranks);
  const int64_t index = half == Half::front ? split.rank : 2 * split.ranks - 1 - split.rank;
  return {index * block, (index + 1) * block};
}

}  // namespace megalith::parallel
