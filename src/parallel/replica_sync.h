#pragma once

#include <limits>
#include <vector>

#include "parallel/groups.h"
#include "parallel/placement/parameter_store.h"

namespace megalith::parallel {

struct ReplicaSyncOptions {
  // Gradients travel between replicas as bf16: half the bytes, and each rank's part is rounded before the sum.
  bool reduces_in_bf16 = false;
};

constexpr int64_t kEmbeddingLayer = -1;
constexpr int64_t kHeadLayer = std::numeric_limits<int64_t>::max();

// Keeps ranks that hold the same weights in step: adds up what each of them has of a gradient, and brings the weights
// that each has updated to all. Calls ask and do not wait, except that on the CPU the host waits where a call depends
// on another or on memory that is still in use.
//
// One step: start_gather(), wait_for_weights() and use of each chunk; start_reduce() of each bucket once its gradients
// are made; finish_reductions(); the update. All ranks of a group make these calls in the same order.
//
// Where weights are sharded a step also calls release_weights() as the schedule says and prepare_gradients() before
// each backward of a chunk, and reduces the buckets of a chunk after each. A backward then writes gradients as that of
// a step's first micro batch does; the shard adds up the micro batches.
class ReplicaSync {
 public:
  // The store and the groups must outlive it. `scratch` is used only where gradients travel as bf16.
  ReplicaSync(const ParameterStore& store, const Groups& groups, const ReplicaSyncOptions& options, Arena& scratch);

  static int64_t scratch_bytes(const Placement& placement, const ReplicaSyncOptions& options);

  // Work given to the stream before has made the bucket's gradients.
  void start_reduce(Stream& stream, size_t bucket);
  // Work given to the stream after it finds the sums of all buckets in this rank's shard (SlabTensors::gradient_shard).
  void finish_reductions(Stream& stream);

  // Work given to the stream before has updated this rank's shard of the weights. Nothing is done twice in a step.
  void start_gather(Stream& stream, int64_t chunk);
  void wait_for_weights(Stream& stream, int64_t chunk);
  // Of one bucket alone: the weights that forward meets later may still be on their way.
  void wait_for_bucket(Stream& stream, size_t bucket);

  // Layer by layer, while a chunk runs: the embedding is layer kEmbeddingLayer, all that follows the last block layer
  // kHeadLayer. Before the forward pass of a layer:
  void wait_for_layer(Stream& stream, int64_t chunk, int64_t layer);
  // After its backward pass, where no later micro batch adds to the gradients: starts what they complete.
  void reduce_layer(Stream& stream, int64_t chunk, int64_t layer);
  // Starts what reduce_layer() did not.
  void reduce_rest(Stream& stream, size_t bucket);

  // Sharded weights alone; otherwise there is nothing to do.
  void release_weights(int64_t chunk);
  // Work given to the stream after it may write the gradients of the chunk; those that are summed are zero.
  void prepare_gradients(Stream& stream, int64_t chunk);

 private:
  struct SlabId {
    size_t bucket = 0;
    size_t slab = 0;
  };
  // A slab on its way: first among tensor-parallel ranks, then among replicas.
  struct Reduction {
    SlabId id;
    size_t half = 0;  // of the scratch
    bool is_first_of_step = true;
    bool is_among_replicas = false;
    std::vector<comm::Pending> pending = {};
    Tensor travels = {};  // bf16; absent where the gradients themselves do
  };
  struct BucketState {
    int64_t first_layer = 0;  // backward has made all gradients when it has come to this layer
    bool is_early = false;    // reduce_layer() has started it
    int64_t reductions = 0;   // in this step
    bool is_gathered = false;
    std::vector<comm::Pending> gather;
  };

  const Slab& slab_of(SlabId id) const { return store_.placement().buckets()[id.bucket].slabs[id.slab]; }
  const SlabTensors& tensors_of(SlabId id) const { return store_.slab(id.bucket, id.slab); }
  Tensor take_scratch(SlabId id, int64_t& offset) const;
  void sum_over_tensor(Stream& stream, Reduction& reduction) const;
  void start_among_replicas(Stream& stream, Reduction& reduction) const;
  Tensor arrival_of(const Reduction& reduction) const;
  bool adds(const Reduction& reduction) const;
  void complete(Stream& stream, const Reduction& reduction) const;
  void start_those_that_wait(Stream& stream);
  template <class Wanted>
  void complete_if(Stream& stream, const Wanted& wanted);
  void sum_shared_gradients(Stream& stream) const;
  bool is_slot_free(int64_t chunk) const;

  const ParameterStore& store_;
  const Groups& groups_;
  Tensor scratch_;  // two halves, each large enough for any bucket: one travels while the other is filled
  size_t next_half_ = 0;
  std::vector<Reduction> underway_;
  std::vector<BucketState> buckets_;
};

// The traffic of a chunk while a pass runs over it.
struct LayerTraffic {
  ReplicaSync* sync = nullptr;  // null: all weights are there, and all gradients stay
  int64_t chunk = 0;

  void before_forward(Stream& stream, int64_t layer) const {
    if (sync != nullptr) sync->wait_for_layer(stream, chunk, layer);
  }
  void after_backward(Stream& stream, int64_t layer) const {
    if (sync != nullptr) sync->reduce_layer(stream, chunk, layer);
  }
};

}  // namespace megalith::parallel
