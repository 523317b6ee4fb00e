#pragma once

#include <vector>

#include "parallel/buckets.h"
#include "parallel/layout.h"

namespace megalith::parallel {

struct PlacementRequest {
  const ParameterTable& table;
  Layout layout = {};
  int64_t layers = 0;
  bool tied_embeddings = false;
  int64_t bucket_elements = int64_t{40} << 20;
};

// Rows of a parameter of which a rank holds master weights and moments.
struct ShardPiece {
  size_t bucket = 0;
  size_t slab = 0;
  size_t parameter = 0;       // index among the placed parameters
  Interval local_rows;        // of the rank's own tensor
  std::vector<Piece> pieces;  // what these rows are of the whole
};

// What the ranks at one place of the tensor and pipeline axes hold; those that differ in data and context hold the same
// and differ in their shard. The table of the request must outlive it.
class Placement {
 public:
  Placement(const PlacementRequest& request, int64_t stage, int64_t tensor_rank);

  // In the order in which forward meets them, chunk by chunk.
  const std::vector<PlacedParameter>& parameters() const { return parameters_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // The chunk whose backward finishes each bucket.
  std::vector<int64_t> chunks_of_buckets() const;

  int64_t shards() const { return shards_; }
  // `shard`: Mesh::replica_of() of the rank; 0 where the optimizer is not sharded.
  std::vector<ShardPiece> optimizer_shard(int64_t shard) const;

 private:
  int64_t shards_;
  std::vector<PlacedParameter> parameters_;
  std::vector<Bucket> buckets_;
};

}  // namespace megalith::parallel
