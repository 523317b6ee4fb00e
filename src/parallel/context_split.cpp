#include "parallel/context_split.h"

#include "core/tensor.h"

namespace megalith::parallel {

namespace {

ContextSplit of_rank(const ContextSplit& split, int64_t rank) {
  return {.length = split.length, .ranks = split.ranks, .rank = rank};
}

std::vector<BlockPair> visible_pairs(const ContextSplit& queries, const ContextSplit& keys) {
  std::vector<BlockPair> pairs;
  for (const Half q : {Half::front, Half::back}) {
    for (const Half k : {Half::front, Half::back}) {
      const int64_t query = positions_of(queries, q).begin;
      const int64_t key = positions_of(keys, k).begin;
      if (key <= query) pairs.push_back({.queries = q, .keys = k, .is_diagonal = key == query});
    }
  }
  return pairs;
}

}  // namespace

Interval positions_of(const ContextSplit& split, Half half) {
  const int64_t block = div_exact(split.length, 2 * split.ranks);
  const int64_t index = half == Half::front ? split.rank : 2 * split.ranks - 1 - split.rank;
  return {index * block, (index + 1) * block};
}

std::vector<RingStep> ring_steps(const ContextSplit& split) {
  std::vector<RingStep> steps;
  for (int64_t step = 0; step < split.ranks; ++step) {
    const int64_t key_rank = (split.rank - step + split.ranks) % split.ranks;
    steps.push_back({.key_rank = key_rank, .pairs = visible_pairs(split, of_rank(split, key_rank))});
  }
  return steps;
}

int64_t document_start_in_block(int64_t document_start, const Interval& keys) {
  return std::clamp(document_start - keys.begin, int64_t{0}, keys.size());
}

}  // namespace megalith::parallel
