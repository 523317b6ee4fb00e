#include "parallel/parameter_store.h"

#include "core/rng.h"
#include "ops/elementwise.h"

namespace megalith::parallel {

namespace {

Tensor at(const Tensor& memory, int64_t offset, Shape shape) {
  return Tensor(static_cast<std::byte*>(memory.data) + offset, memory.dtype, shape, memory.device);
}

Tensor allocate_bytes(Arena& arena, const char* what, DType dtype, int64_t bytes) {
  return arena.allocate(what, dtype, {div_exact(bytes, size_of(dtype))});
}

void initialise_piece(Stream& stream, uint64_t seed, const ParameterSpec& spec, const Piece& piece, const Tensor& x) {
  if (spec.initial == Initial::normal) {
    ops::normal_init(stream, {.x = x,
                              .key = named_key(seed, spec.name),
                              .std = spec.std,
                              .row_offset = piece.box.rows.begin,
                              .col_offset = piece.box.columns.begin,
                              .global_cols = spec.shape.rank() == 1 ? 1 : spec.shape[1]});
  } else if (spec.initial == Initial::ones) {
    ops::fill(stream, {.x = x, .value = 1.0});
  }
}

}  // namespace

ParameterStore::ParameterStore(const StoreRequest& request, Arena& weights, Arena* gradients)
    : placement_(request.placement), replica_(request.replica) {
  place_slabs(StoreLayout(placement_, request.compute, replica_), request.compute, weights, gradients);
  for (const PlacedParameter& placed : placement_.parameters()) {
    index_.emplace(placed.spec->name, parameters_.size());
    parameters_.push_back({.spec = placed.spec, .placed = &placed});
  }
  for (size_t b = 0; b < slabs_.size(); ++b) {
    for (size_t s = 0; s < slabs_[b].size(); ++s) {
      const SlabTensors& tensors = slabs_[b][s];
      for (const Slab::Entry& entry : placement_.buckets()[b].slabs[s].entries) {
        Parameter& parameter = parameters_[entry.parameter];
        const PlacedParameter& placed = *parameter.placed;
        const auto part = [&](const Tensor& slab) {
          return slab.slice_rows(entry.first_row, entry.first_row + placed.rows()).view(placed.shape);
        };
        parameter.weight = part(tensors.weights);
        if (gradients != nullptr) parameter.gradient = part(tensors.gradients);
      }
    }
  }
}

void ParameterStore::place_slabs(const StoreLayout& layout, DType compute, Arena& weights, Arena* gradients) {
  const Tensor weight_memory = allocate_bytes(weights, "parameters", compute, layout.weight_bytes());
  const Tensor gradient_memory =
      gradients == nullptr ? Tensor()
                           : allocate_bytes(*gradients, "gradients", main_dtype(compute), layout.gradient_bytes());
  const std::vector<Bucket>& buckets = placement_.buckets();
  for (size_t b = 0; b < buckets.size(); ++b) {
    slabs_.emplace_back();
    for (size_t s = 0; s < buckets[b].slabs.size(); ++s) {
      const Slab& slab = buckets[b].slabs[s];
      const StoreLayout::SlabPlace& place = layout.place(b, s);
      const Shape whole{slab.rows, slab.width};
      const Shape shard{slab.rows / placement_.shards(), slab.width};
      SlabTensors& tensors =
          slabs_.back().emplace_back(SlabTensors{.weights = at(weight_memory, place.weights, whole),
                                                 .weight_shard = at(weight_memory, place.weight_shard, shard)});
      if (gradients == nullptr) continue;
      tensors.gradients = at(gradient_memory, place.gradients, whole);
      tensors.gradient_shard = at(gradient_memory, place.gradient_shard, shard);
    }
  }
  if (gradients == nullptr) return;
  for (int64_t chunk = 0; chunk < placement_.chunks(); ++chunk) {
    const Interval& bytes = layout.summed_gradients(chunk);
    summed_gradients_.push_back(
        bytes.empty() ? Tensor() : at(gradient_memory, bytes.begin, {bytes.size() / size_of(gradient_memory.dtype)}));
  }
}

const Parameter& ParameterStore::operator[](std::string_view name) const {
  const auto found = index_.find(name);
  MEGALITH_CHECK(found != index_.end(), "no parameter '{}' is on this rank", name);
  return parameters_[found->second];
}

void ParameterStore::initialise(Stream& stream, uint64_t seed) const {
  for (size_t b = 0; b < slabs_.size(); ++b) {
    for (size_t s = 0; s < slabs_[b].size(); ++s) initialise_slab(stream, seed, b, s);
  }
}

void ParameterStore::initialise_slab(Stream& stream, uint64_t seed, size_t bucket, size_t slab) const {
  const bool is_resident = placement_.buckets()[bucket].is_resident;
  const Slab& shape = placement_.buckets()[bucket].slabs[slab];
  const Interval rows = is_resident ? Interval{0, shape.rows} : placement_.shard_rows(shape, replica_);
  const Tensor memory = is_resident ? slabs_[bucket][slab].weights : slabs_[bucket][slab].weight_shard;
  ops::fill(stream, {.x = memory, .value = 0.0});
  for (const Slab::Entry& entry : shape.entries) {
    const PlacedParameter& placed = placement_.parameters()[entry.parameter];
    const int64_t offset = entry.first_row - rows.begin;
    for (const Piece& piece : pieces_in_rows(placed.pieces, shifted(rows, -entry.first_row))) {
      const Interval local = shifted(piece.local_rows(), offset);
      initialise_piece(stream, seed, *placed.spec, piece, memory.slice_rows(local.begin, local.end));
    }
  }
}

void ParameterStore::zero_gradients(Stream& stream) const {
  for (const std::vector<SlabTensors>& bucket : slabs_) {
    for (const SlabTensors& slab : bucket) ops::fill(stream, {.x = slab.gradients, .value = 0.0});
  }
}

void ParameterStore::zero_summed_gradients(Stream& stream) const {
  for (int64_t chunk = 0; chunk < placement_.chunks(); ++chunk) zero_summed_gradients(stream, chunk);
}

void ParameterStore::zero_summed_gradients(Stream& stream, int64_t chunk) const {
  const Tensor& gradients = summed_gradients_[static_cast<size_t>(chunk)];
  if (gradients) ops::fill(stream, {.x = gradients, .value = 0.0});
}

}  // namespace megalith::parallel
