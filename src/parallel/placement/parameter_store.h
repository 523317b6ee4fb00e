#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/arena.h"
#include "core/stream.h"
#include "parallel/placement/store_layout.h"

namespace megalith::parallel {

// A parameter as this rank holds it: contiguous tensors within slabs.
struct Parameter {
  const ParameterSpec* spec = nullptr;
  const PlacedParameter* placed = nullptr;
  Tensor weight;    // compute dtype
  Tensor gradient;  // main dtype; absent where nothing is trained
};

// A slab's memory, as matrices. Padding is zero and stays zero; only in the gradients of a chunk that shares its memory
// with others it is anything.
struct SlabTensors {
  Tensor weights;       // (rows, width)
  Tensor weight_shard;  // this replica's rows of it
  Tensor gradients;     // absent, like their shard, where nothing is trained
  Tensor gradient_shard;
};

// A piece of a parameter and the rows that hold its weights.
struct HeldPiece {
  Piece piece;
  Tensor weight;  // (rows, columns of the rank's own tensor)
};

struct StoreRequest {
  const Placement& placement;  // must outlive the store
  DType compute = DType::f32;
  int64_t replica = 0;  // Mesh::replica_of() of this rank
};

// The parameters of this rank. Their tensors keep their addresses, also where weights come and go (StoreLayout).
class ParameterStore {
 public:
  // `gradients` may be null: evaluation and generation hold weights alone.
  ParameterStore(const StoreRequest& request, Arena& weights, Arena* gradients);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  // By the logical name; one that this rank does not hold is an internal error.
  const Parameter& operator[](std::string_view name) const;
  bool contains(std::string_view name) const { return index_.contains(name); }
  // In the order of Placement::parameters().
  const std::vector<Parameter>& all() const { return parameters_; }

  const Placement& placement() const { return placement_; }
  int64_t replica() const { return replica_; }
  const SlabTensors& slab(size_t bucket, size_t slab) const { return slabs_[bucket][slab]; }
  // What is held of the weights of all()[parameter] at any time: all, or this rank's shard where the rest comes and
  // goes.
  std::vector<HeldPiece> held_weights(size_t parameter) const;

  // Values from the specs for what is held, keyed by (seed, logical name, global element).
  void initialise(Stream& stream, uint64_t seed) const;
  // Only those that are added to from the first micro batch on (Context::first_of_step).
  void zero_summed_gradients(Stream& stream) const;
  void zero_summed_gradients(Stream& stream, int64_t chunk) const;

 private:
  void place_slabs(const StoreLayout& layout, DType compute, Arena& weights, Arena* gradients);

  struct SlabEntry {
    size_t bucket = 0;
    size_t slab = 0;
    int64_t first_row = 0;
  };

  const Placement& placement_;
  int64_t replica_;
  std::vector<std::vector<SlabTensors>> slabs_;
  std::vector<Parameter> parameters_;
  std::vector<SlabEntry> entries_;  // of the parameters
  std::unordered_map<std::string_view, size_t> index_;
  std::vector<Tensor> summed_gradients_;  // of each chunk; absent where it has none
};

}  // namespace megalith::parallel
