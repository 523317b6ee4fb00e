#pragma once

#include <vector>

#include "parallel/layout.h"
#include "parallel/placement/buckets.h"

namespace megalith::parallel {

constexpr int64_t kBucketElements = int64_t{40} << 20;

struct PlacementRequest {
  const ParameterTable& table;
  Layout layout = {};
  int64_t layers = 0;
  bool tied_embeddings = false;
  int64_t bucket_elements = kBucketElements;
};

// Rows of a parameter of which a rank holds master weights and moments.
struct ShardPiece {
  size_t bucket = 0;
  size_t slab = 0;
  size_t parameter = 0;       // index among the placed parameters
  Interval local_rows;        // of the rank's own tensor
  int64_t shard_row = 0;      // where they begin in the shard of the slab
  std::vector<Piece> pieces;  // what these rows are of the whole
};

// Rows of a rank's own tensor.
struct ParameterRows {
  size_t parameter = 0;  // index among the placed parameters
  Interval local_rows;

  bool operator==(const ParameterRows&) const = default;
};

// What the ranks at one place of the tensor and pipeline axes hold; those that differ in data and context hold the same
// and differ in their shard. The table of the request must outlive it.
class Placement {
 public:
  Placement(const PlacementRequest& request, int64_t stage, int64_t tensor_rank);
  // The whole model on one rank.
  explicit Placement(const ParameterTable& table);

  // In the order in which forward meets them, chunk by chunk.
  const std::vector<PlacedParameter>& parameters() const { return parameters_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // The chunk whose backward finishes each bucket.
  std::vector<int64_t> chunks_of_buckets() const;

  int64_t chunks() const { return chunks_; }
  int64_t shards() const { return shards_; }
  bool shards_weights() const { return shards_weights_; }

  // For each rank by its Mesh::replica_of(), in the order of forward. All replicas hold everything where the optimizer
  // is not sharded.
  std::vector<ShardPiece> optimizer_shard(int64_t replica) const;
  // What the rank adds to the norm of all gradients: of all ranks together each element of the model once.
  std::vector<ParameterRows> rows_in_norm(int64_t replica) const;
  // The rows of a slab that belong to a replica's shard.
  Interval shard_rows(const Slab& slab, int64_t replica) const;

 private:
  int64_t chunks_ = 1;
  int64_t shards_ = 1;
  bool shards_weights_ = false;
  std::vector<PlacedParameter> parameters_;
  std::vector<Bucket> buckets_;
};

}  // namespace megalith::parallel
