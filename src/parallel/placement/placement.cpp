#include "parallel/placement/placement.h"

#include <algorithm>

namespace megalith::parallel {

namespace {

// On one of several stages the two uses of a tied embedding are two copies.
bool spans_chunks(const ParameterSpec& spec, const PlacementRequest& request) {
  return request.tied_embeddings && is_token_embedding(spec) && request.layout.pipeline == 1 &&
         request.layout.chunks > 1;
}

// What the chunks of a stage hold, each in the order of forward: the second copy of a tied embedding serves the head
// and comes last.
std::vector<PlacedParameter> parameters_of(const PlacementRequest& request, int64_t stage, const TensorShare& share) {
  std::vector<std::vector<PlacedParameter>> held(static_cast<size_t>(request.layout.chunks));
  std::vector<PlacedParameter> second_copies;
  for (const ParameterSpec& spec : request.table.specs()) {
    const std::vector<Home> homes = homes_of(spec, request.layout, request.layers, request.tied_embeddings);
    for (const Home& home : homes) {
      if (home.stage != stage) continue;
      const bool is_first = home == homes.front();
      (is_first ? held[static_cast<size_t>(home.chunk)] : second_copies)
          .push_back({.spec = &spec,
                      .chunk = home.chunk,
                      .shape = local_shape(spec, share.ranks),
                      .pieces = pieces_of(spec, share),
                      .is_shared = homes.size() > 1,
                      .is_owner = is_first,
                      .gradient_by_product = spec.gradient_by_product && home == homes.back(),
                      .spans_chunks = spans_chunks(spec, request)});
    }
  }
  held.push_back(std::move(second_copies));
  std::vector<PlacedParameter> all;
  for (std::vector<PlacedParameter>& part : held) std::move(part.begin(), part.end(), std::back_inserter(all));
  return all;
}

}  // namespace

Placement::Placement(const PlacementRequest& request, int64_t stage, int64_t tensor_rank)
    : chunks_(request.layout.chunks),
      shards_(request.layout.optimizer_shards()),
      shards_weights_(request.layout.shards_weights && shards_ > 1) {
  const TensorShare share{
      .ranks = request.layout.tensor, .rank = tensor_rank, .sequence_parallel = request.layout.sequence_parallel};
  parameters_ = parameters_of(request, stage, share);
  for (const PlacedParameter& parameter : parameters_) {
    // Nobody could clear it: the head adds to it in one chunk, the embedding in another.
    MEGALITH_CHECK(!shards_weights_ || !parameter.spans_chunks || parameter.gradient_by_product,
                   "the gradient of '{}', used by two chunks, is not made by a product", parameter.spec->name);
  }
  buckets_ = make_buckets(parameters_,
                          {.shards = shards_, .shards_weights = shards_weights_, .elements = request.bucket_elements});
}

Placement::Placement(const ParameterTable& table) {
  for (const ParameterSpec& spec : table.specs()) {
    parameters_.push_back({.spec = &spec,
                           .shape = spec.shape,
                           .pieces = pieces_of(spec, {}),
                           .gradient_by_product = spec.gradient_by_product});
  }
  buckets_ = make_buckets(parameters_, {.elements = kBucketElements});
}

std::vector<int64_t> Placement::chunks_of_buckets() const {
  std::vector<int64_t> chunks;
  for (const Bucket& bucket : buckets_) chunks.push_back(bucket.chunk);
  return chunks;
}

Interval Placement::shard_rows(const Slab& slab, int64_t replica) const {
  const int64_t each = div_exact(slab.rows, shards_);
  const int64_t shard = shards_ == 1 ? 0 : replica;
  return {shard * each, (shard + 1) * each};
}

std::vector<ShardPiece> Placement::optimizer_shard(int64_t replica) const {
  std::vector<ShardPiece> found;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const std::vector<Slab>& slabs = buckets_[bucket].slabs;
    for (size_t slab = 0; slab < slabs.size(); ++slab) {
      const Interval rows = shard_rows(slabs[slab], replica);
      for (const Slab::Entry& entry : slabs[slab].entries) {
        const PlacedParameter& parameter = parameters_[entry.parameter];
        const Interval local = intersection(shifted(rows, -entry.first_row), {0, parameter.rows()});
        if (local.empty()) continue;
        found.push_back({.bucket = bucket,
                         .slab = slab,
                         .parameter = entry.parameter,
                         .local_rows = local,
                         .shard_row = entry.first_row + local.begin - rows.begin,
                         .pieces = pieces_in_rows(parameter.pieces, local)});
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const ShardPiece& a, const ShardPiece& b) { return a.parameter < b.parameter; });
  return found;
}

std::vector<ParameterRows> Placement::rows_in_norm(int64_t replica) const {
  std::vector<ParameterRows> counted;
  if (shards_ == 1 && replica != 0) return counted;
  for (const ShardPiece& shard : optimizer_shard(replica)) {
    if (!parameters_[shard.parameter].is_owner) continue;
    for (const Piece& piece : shard.pieces) {
      if (!piece.is_owner()) continue;
      const bool goes_on = !counted.empty() && counted.back().parameter == shard.parameter &&
                           counted.back().local_rows.end == piece.local_row;
      if (goes_on) {
        counted.back().local_rows.end = piece.local_rows().end;
      } else {
        counted.push_back({shard.parameter, piece.local_rows()});
      }
    }
  }
  return counted;
}

}  // namespace megalith::parallel
