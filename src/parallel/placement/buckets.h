#pragma once

#include <vector>

#include "parallel/placement/cuts.h"

namespace megalith::parallel {

// A parameter as a rank holds it.
struct PlacedParameter {
  const ParameterSpec* spec = nullptr;
  int64_t chunk = 0;
  Shape shape;                // of the rank's own tensor
  std::vector<Piece> pieces;  // what it is of the whole
  // Also held by the other end of the pipeline (tied embedding): the gradients of the two are added up after each has
  // been reduced over its data-parallel group.
  bool is_shared = false;
  // Of two holders the first stage counts for checkpoints and the gradient norm.
  bool is_owner = true;
  // A product overwrites its gradient here in the first micro batch of a step. Not that of a tied embedding on the
  // first of several stages: the head's product is on the last.
  bool gradient_by_product = false;
  // The first and the last chunk of the rank both use it (tied embedding): neither can give it up after its use.
  bool spans_chunks = false;

  // Every tensor-parallel rank holds all of it and has a part of its gradient (sequence parallelism).
  bool sums_over_tensor() const;
  int64_t rows() const { return shape[0]; }
  int64_t columns() const { return shape.rank() == 1 ? 1 : shape[1]; }
  // The shape of some of its rows.
  Shape shape_of(int64_t row_count) const { return shape.rank() == 1 ? Shape{row_count} : Shape{row_count, shape[1]}; }
};

// Parameters of equal width and use as one matrix in memory, which one collective call reduces, scatters or gathers.
// Its rows are a multiple of the shards, so that equal shards are whole rows of parameters; what lies between or behind
// parameters is padding.
struct Slab {
  struct Entry {
    size_t parameter = 0;  // index among the placed parameters
    int64_t first_row = 0;
  };

  int64_t width = 0;
  int64_t rows = 0;
  bool gradient_by_product = false;
  bool sums_over_tensor = false;  // as all its parameters
  std::vector<Entry> entries;

  int64_t elements() const { return rows * width; }
};

// Gradients that are reduced together, once backward of their chunk has made them. A shared parameter has a bucket of
// its own, so that both its holders cut it alike; one that spans chunks too, because it stays when they go.
struct Bucket {
  int64_t chunk = 0;
  // Whole weights and gradients have memory of their own. Otherwise they share it with other chunks (sharded weights).
  bool is_resident = true;
  bool is_shared = false;
  std::vector<Slab> slabs;

  int64_t elements() const;
};

struct BucketOptions {
  int64_t shards = 1;
  bool shards_weights = false;
  int64_t elements = 0;  // of a bucket at the most, unless one parameter alone has more
};

// Parameters start at multiples of this many elements: 256 bytes of bf16, so that equal GEMMs of different layers
// find their operands aligned alike and use the same tuned algorithm.
constexpr int64_t kParameterAlignment = 128;

// Buckets of parameters that stand in the order of forward, in the order in which backward finishes them: from the last
// parameter to the first.
std::vector<Bucket> make_buckets(const std::vector<PlacedParameter>& parameters, const BucketOptions& options);

}  // namespace megalith::parallel
