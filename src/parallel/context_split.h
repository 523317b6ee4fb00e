#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "parallel/interval.h"

namespace megalith::parallel {

// How context-parallel ranks share the positions of a sample. It is cut into 2 x ranks blocks; a rank takes one from
// the front and its mirror image from the back (zigzag), so that under a causal mask all have the same work. A rank's
// own tokens are its two blocks in that order.
struct ContextSplit {
  int64_t length = 0;  // a multiple of 2 x ranks
  int64_t ranks = 1;
  int64_t rank = 0;

  int64_t block() const { return length / (2 * ranks); }
  int64_t local_length() const { return 2 * block(); }
};

enum class Half { front, back };

// The positions of a half in the sample.
Interval positions_of(const ContextSplit& split, Half half);

// Of one value per position (token ids, positions, document starts), those of the rank.
template <class T>
std::vector<T> take_local(const ContextSplit& split, std::span<const T> whole) {
  std::vector<T> local;
  for (const Half half : {Half::front, Half::back}) {
    const Interval positions = positions_of(split, half);
    local.insert(local.end(), whole.begin() + positions.begin, whole.begin() + positions.end);
  }
  return local;
}

// Queries of this rank against keys of `key_rank`, both one block long.
struct BlockPair {
  Half queries = Half::front;
  Half keys = Half::front;
  bool is_diagonal = false;  // the same positions: each query sees the keys up to its own; otherwise it sees all

  bool operator==(const BlockPair&) const = default;
};

// One step of the ring: the keys that have arrived and what is computed with them.
struct RingStep {
  int64_t key_rank = 0;
  std::vector<BlockPair> pairs;
};

// Step i uses the keys and values of the rank i places before, step 0 those of the rank itself. A diagonal pair counts
// half: every step of every rank is as much work as two whole pairs.
std::vector<RingStep> ring_steps(const ContextSplit& split);

// A query's document start, counted from the first key of a block: queries see no key before it.
int64_t document_start_in_block(int64_t document_start, const Interval& keys);

}  // namespace megalith::parallel
