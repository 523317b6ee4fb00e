#include "parallel/replica_sync.h"

#include <algorithm>

#include "ops/elementwise.h"

namespace megalith::parallel {

namespace {

constexpr int64_t kScratchHalves = 2;

Tensor flat(const Tensor& tensor) {
  return tensor.view({tensor.elements()});
}

void wait_for_all(Stream& stream, const std::vector<comm::Pending>& calls) {
  for (const comm::Pending& call : calls) call.wait(stream);
}

int64_t first_layer_of(const Bucket& bucket, const Placement& placement) {
  int64_t first = kHeadLayer;
  for (const Slab& slab : bucket.slabs) {
    for (const Slab::Entry& entry : slab.entries) {
      const PlacedParameter& parameter = placement.parameters()[entry.parameter];
      // The second copy of a tied embedding serves the head alone.
      const bool is_heads_copy = parameter.is_shared && !parameter.is_owner;
      const std::optional<int64_t> layer = layer_of(*parameter.spec);
      const bool is_embedding = parameter.spec->name.starts_with("embedding.") && !is_heads_copy;
      first = std::min(first, layer ? *layer : is_embedding ? kEmbeddingLayer : kHeadLayer);
    }
  }
  return first;
}

int64_t half_bytes(const Placement& placement) {
  int64_t largest = 0;
  for (const Bucket& bucket : placement.buckets()) {
    int64_t bytes = 0;
    for (const Slab& slab : bucket.slabs) bytes += Arena::footprint(DType::bf16, slab.elements());
    largest = std::max(largest, bytes);
  }
  return largest;
}

// Rows of a slab whose gradients tensor-parallel ranks with the same key and value heads each have a part of.
std::vector<Interval> rows_of_shared_heads(const Placement& placement, const Slab& slab) {
  std::vector<Interval> found;
  for (const Slab::Entry& entry : slab.entries) {
    for (const Piece& piece : placement.parameters()[entry.parameter].pieces) {
      if (!piece.gradient_is_partial) continue;
      const Interval rows = shifted(piece.local_rows(), entry.first_row);
      if (!found.empty() && found.back().end == rows.begin) {
        found.back().end = rows.end;
      } else {
        found.push_back(rows);
      }
    }
  }
  return found;
}

}  // namespace

int64_t ReplicaSync::scratch_bytes(const Placement& placement, const ReplicaSyncOptions& options) {
  return options.reduces_in_bf16 ? kScratchHalves * half_bytes(placement) : 0;
}

ReplicaSync::ReplicaSync(const ParameterStore& store, const Groups& groups, const ReplicaSyncOptions& options,
                         Arena& scratch)
    : store_(store), groups_(groups), buckets_(store.placement().buckets().size()) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    buckets_[b].first_layer = first_layer_of(store.placement().buckets()[b], store.placement());
  }
  const int64_t shards = store.placement().shards();
  MEGALITH_CHECK(shards == 1 || groups.replicas->size() == shards,
                 "{} shards of the optimizer, but not as many replicas", shards);
  MEGALITH_CHECK(store.replica() == groups.replicas->rank(), "the store is that of replica {}, not of this rank",
                 store.replica());
  if (!groups.replicas->is_alone() && options.reduces_in_bf16) {
    const int64_t bytes = scratch_bytes(store.placement(), options);
    scratch_ = scratch.allocate("gradients in bf16", DType::bf16, {bytes / size_of(DType::bf16)});
  }
}

void ReplicaSync::start_reduce(Stream& stream, size_t bucket) {
  start_those_that_wait(stream);
  const size_t half = next_half_++ % kScratchHalves;
  if (scratch_) complete_if(stream, [&](const Reduction& reduction) { return reduction.half == half; });
  int64_t offset = static_cast<int64_t>(half) * (scratch_.elements() / kScratchHalves);
  const bool is_first = buckets_[bucket].reductions++ == 0;
  for (size_t slab = 0; slab < store_.placement().buckets()[bucket].slabs.size(); ++slab) {
    Reduction reduction{.id = {bucket, slab}, .half = half, .is_first_of_step = is_first};
    if (scratch_) reduction.travels = take_scratch(reduction.id, offset);
    sum_over_tensor(stream, reduction);
    // Others wait until the next bucket: by then the sums are likely there.
    if (reduction.pending.empty()) start_among_replicas(stream, reduction);
    underway_.push_back(std::move(reduction));
  }
}

Tensor ReplicaSync::take_scratch(SlabId id, int64_t& offset) const {
  const int64_t elements = slab_of(id).elements();
  const Tensor taken(scratch_.as<bfloat16>() + offset, DType::bf16, {elements}, scratch_.device);
  offset += Arena::footprint(DType::bf16, elements) / size_of(DType::bf16);
  return taken;
}

void ReplicaSync::sum_over_tensor(Stream& stream, Reduction& reduction) const {
  const Slab& slab = slab_of(reduction.id);
  const Tensor& gradients = tensors_of(reduction.id).gradients;
  if (slab.sums_over_tensor && !groups_.tensor->is_alone()) {
    reduction.pending.push_back(groups_.tensor->all_reduce(stream, gradients));
  } else if (!groups_.kv_heads->is_alone()) {
    for (const Interval& rows : rows_of_shared_heads(store_.placement(), slab)) {
      reduction.pending.push_back(groups_.kv_heads->all_reduce(stream, gradients.slice_rows(rows.begin, rows.end)));
    }
  }
}

void ReplicaSync::start_among_replicas(Stream& stream, Reduction& reduction) const {
  wait_for_all(stream, reduction.pending);
  reduction.pending.clear();
  reduction.is_among_replicas = true;
  if (groups_.replicas->is_alone()) return;
  const Tensor gradients = flat(tensors_of(reduction.id).gradients);
  if (reduction.travels) ops::cast(stream, {.x = gradients, .y = reduction.travels});
  const Tensor& whole = reduction.travels ? reduction.travels : gradients;
  reduction.pending.push_back(store_.placement().shards() == 1
                                  ? groups_.replicas->all_reduce(stream, whole)
                                  : groups_.replicas->reduce_scatter(stream, whole, arrival_of(reduction)));
}

// Where the replicas' sum of this rank's shard appears.
Tensor ReplicaSync::arrival_of(const Reduction& reduction) const {
  const auto shards = static_cast<int>(store_.placement().shards());
  const auto replica = shards == 1 ? 0 : static_cast<int>(store_.replica());
  const SlabTensors& tensors = tensors_of(reduction.id);
  if (reduction.travels) return comm::piece_of(reduction.travels, shards, replica);
  return adds(reduction) ? comm::piece_of(tensors.gradients, shards, replica) : flat(tensors.gradient_shard);
}

// Earlier micro batches are in the shard already.
bool ReplicaSync::adds(const Reduction& reduction) const {
  return store_.placement().shards_weights() && !reduction.is_first_of_step;
}

void ReplicaSync::complete(Stream& stream, const Reduction& reduction) const {
  wait_for_all(stream, reduction.pending);
  if (groups_.replicas->is_alone()) return;
  const SlabTensors& tensors = tensors_of(reduction.id);
  const Tensor shard = flat(tensors.gradient_shard);
  Tensor arrived = arrival_of(reduction);
  if (reduction.travels) {
    // What has travelled is free for the wider copy.
    const Tensor widened =
        adds(reduction) ? flat(tensors.gradients.slice_rows(0, tensors.gradient_shard.rows())) : shard;
    ops::cast(stream, {.x = arrived, .y = widened});
    arrived = widened;
  }
  if (adds(reduction)) ops::add(stream, {.a = arrived, .b = shard, .y = shard});
}

void ReplicaSync::start_those_that_wait(Stream& stream) {
  for (Reduction& reduction : underway_) {
    if (!reduction.is_among_replicas) start_among_replicas(stream, reduction);
  }
}

template <class Wanted>
void ReplicaSync::complete_if(Stream& stream, const Wanted& wanted) {
  std::erase_if(underway_, [&](const Reduction& reduction) {
    const bool is_wanted = wanted(reduction);
    if (is_wanted) complete(stream, reduction);
    return is_wanted;
  });
}

void ReplicaSync::finish_reductions(Stream& stream) {
  start_those_that_wait(stream);
  complete_if(stream, [](const Reduction&) { return true; });
  if (!groups_.embedding->is_alone()) sum_shared_gradients(stream);
  for (BucketState& bucket : buckets_) {
    bucket.reductions = 0;
    bucket.is_gathered = false;
  }
}

void ReplicaSync::sum_shared_gradients(Stream& stream) const {
  std::vector<comm::Pending> calls;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = store_.placement().buckets()[b];
    if (!bucket.is_shared) continue;
    for (size_t s = 0; s < bucket.slabs.size(); ++s) {
      calls.push_back(groups_.embedding->all_reduce(stream, store_.slab(b, s).gradient_shard));
    }
  }
  wait_for_all(stream, calls);
}

void ReplicaSync::start_gather(Stream& stream, int64_t chunk) {
  if (store_.placement().shards() == 1) return;
  for (size_t b = buckets_.size(); b-- > 0;) {
    const Bucket& bucket = store_.placement().buckets()[b];
    if (bucket.chunk != chunk || buckets_[b].is_gathered) continue;
    MEGALITH_CHECK(bucket.is_resident || is_slot_free(chunk), "another chunk's weights are where those of {} go",
                   chunk);
    for (size_t s = 0; s < bucket.slabs.size(); ++s) {
      const SlabTensors& tensors = store_.slab(b, s);
      buckets_[b].gather.push_back(
          groups_.replicas->all_gather(stream, flat(tensors.weight_shard), flat(tensors.weights)));
    }
    buckets_[b].is_gathered = true;
  }
}

void ReplicaSync::wait_for_weights(Stream& stream, int64_t chunk) {
  for (size_t b = buckets_.size(); b-- > 0;) {
    if (store_.placement().buckets()[b].chunk == chunk) wait_for_bucket(stream, b);
  }
}

void ReplicaSync::wait_for_bucket(Stream& stream, size_t bucket) {
  wait_for_all(stream, buckets_[bucket].gather);
  buckets_[bucket].gather.clear();
}

void ReplicaSync::wait_for_layer(Stream& stream, int64_t chunk, int64_t layer) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (store_.placement().buckets()[b].chunk == chunk && buckets_[b].first_layer <= layer) wait_for_bucket(stream, b);
  }
}

void ReplicaSync::reduce_layer(Stream& stream, int64_t chunk, int64_t layer) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (store_.placement().buckets()[b].chunk != chunk || buckets_[b].first_layer < layer || buckets_[b].is_early) {
      continue;
    }
    buckets_[b].is_early = true;
    start_reduce(stream, b);
  }
}

void ReplicaSync::reduce_rest(Stream& stream, size_t bucket) {
  if (!buckets_[bucket].is_early) start_reduce(stream, bucket);
  buckets_[bucket].is_early = false;
}

bool ReplicaSync::is_slot_free(int64_t chunk) const {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = store_.placement().buckets()[b];
    const bool is_rival = !bucket.is_resident && bucket.chunk != chunk && slot_of(bucket.chunk) == slot_of(chunk);
    if (is_rival && buckets_[b].is_gathered) return false;
  }
  return true;
}

void ReplicaSync::release_weights(int64_t chunk) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = store_.placement().buckets()[b];
    if (bucket.is_resident || bucket.chunk != chunk) continue;
    MEGALITH_CHECK(buckets_[b].gather.empty(), "the weights of chunk {} are given up before anyone waited for them",
                   chunk);
    buckets_[b].is_gathered = false;
  }
}

void ReplicaSync::prepare_gradients(Stream& stream, int64_t chunk) {
  if (!store_.placement().shards_weights()) return;
  start_those_that_wait(stream);
  complete_if(stream, [&](const Reduction& reduction) {
    const Bucket& bucket = store_.placement().buckets()[reduction.id.bucket];
    return bucket.is_resident || slot_of(bucket.chunk) == slot_of(chunk);
  });
  store_.zero_summed_gradients(stream, chunk);
}

}  // namespace megalith::parallel
