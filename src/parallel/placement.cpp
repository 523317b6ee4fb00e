#include "parallel/placement.h"

namespace megalith::parallel {

namespace {

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
                      .is_owner = is_first});
    }
  }
  held.push_back(std::move(second_copies));
  std::vector<PlacedParameter> all;
  for (std::vector<PlacedParameter>& part : held) std::move(part.begin(), part.end(), std::back_inserter(all));
  return all;
}

Interval rows_of_shard(const Slab& slab, int64_t shards, int64_t shard) {
  const int64_t each = div_exact(slab.rows, shards);
  return {shard * each, (shard + 1) * each};
}

}  // namespace

Placement::Placement(const PlacementRequest& request, int64_t stage, int64_t tensor_rank)
    : shards_(request.layout.optimizer_shards()) {
  const TensorShare share{
      .ranks = request.layout.tensor, .rank = tensor_rank, .sequence_parallel = request.layout.sequence_parallel};
  parameters_ = parameters_of(request, stage, share);
  buckets_ = make_buckets(parameters_, {.shards = shards_, .elements = request.bucket_elements});
}

std::vector<int64_t> Placement::chunks_of_buckets() const {
  std::vector<int64_t> chunks;
  for (const Bucket& bucket : buckets_) chunks.push_back(bucket.chunk);
  return chunks;
}

std::vector<ShardPiece> Placement::optimizer_shard(int64_t shard) const {
  std::vector<ShardPiece> found;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const std::vector<Slab>& slabs = buckets_[bucket].slabs;
    for (size_t slab = 0; slab < slabs.size(); ++slab) {
      const Interval rows = rows_of_shard(slabs[slab], shards_, shard);
      for (const Slab::Entry& entry : slabs[slab].entries) {
        const PlacedParameter& parameter = parameters_[entry.parameter];
        const Interval local = intersection(shifted(rows, -entry.first_row), {0, parameter.rows()});
        if (local.empty()) continue;
        found.push_back({.bucket = bucket,
                         .slab = slab,
                         .parameter = entry.parameter,
                         .local_rows = local,
                         .pieces = pieces_in_rows(parameter.pieces, local)});
      }
    }
  }
  return found;
}

}  // namespace megalith::parallel
