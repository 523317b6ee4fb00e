#include "parallel/placement/parameter_store.h"

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

void initialise_piece(Stream& stream, uint64_t seed, const ParameterSpec& spec, const HeldPiece& held) {
  if (spec.initial == Initial::normal) {
    ops::normal_init(stream, {.x = held.weight,
                              .key = named_key(seed, spec.name),
                              .std = spec.std,
                              .row_offset = held.piece.box.rows.begin,
                              .col_offset = held.piece.box.columns.begin,
                              .global_cols = spec.shape.rank() == 1 ? 1 : spec.shape[1]});
  } else if (spec.initial == Initial::ones) {
    ops::fill(stream, {.x = held.weight, .value = 1.0});
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
  entries_.resize(parameters_.size());
  for (size_t b = 0; b < slabs_.size(); ++b) {
    for (size_t s = 0; s < slabs_[b].size(); ++s) {
      const SlabTensors& tensors = slabs_[b][s];
      for (const Slab::Entry& entry : placement_.buckets()[b].slabs[s].entries) {
        entries_[entry.parameter] = {b, s, entry.first_row};
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
      const StoreLayout::SlabOffsets& offsets = layout.offsets(b, s);
      const Shape whole{slab.rows, slab.width};
      const Shape shard{slab.rows / placement_.shards(), slab.width};
      SlabTensors& tensors =
          slabs_.back().emplace_back(SlabTensors{.weights = at(weight_memory, offsets.weights, whole),
                                                 .weight_shard = at(weight_memory, offsets.weight_shard, shard)});
      if (gradients == nullptr) continue;
      tensors.gradients = at(gradient_memory, offsets.gradients, whole);
      tensors.gradient_shard = at(gradient_memory, offsets.gradient_shard, shard);
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

std::vector<HeldPiece> ParameterStore::held_weights(size_t parameter) const {
  const SlabEntry& entry = entries_[parameter];
  const Bucket& bucket = placement_.buckets()[entry.bucket];
  const Slab& slab = bucket.slabs[entry.slab];
  const SlabTensors& tensors = slabs_[entry.bucket][entry.slab];
  const Interval rows = bucket.is_resident ? Interval{0, slab.rows} : placement_.shard_rows(slab, replica_);
  const Tensor& memory = bucket.is_resident ? tensors.weights : tensors.weight_shard;
  std::vector<HeldPiece> held;
  for (const Piece& piece : pieces_in_rows(parameters_[parameter].placed->pieces, shifted(rows, -entry.first_row))) {
    const Interval in_memory = shifted(piece.local_rows(), entry.first_row - rows.begin);
    held.push_back({piece, memory.slice_rows(in_memory.begin, in_memory.end)});
  }
  return held;
}

void ParameterStore::initialise(Stream& stream, uint64_t seed) const {
  for (size_t b = 0; b < slabs_.size(); ++b) {
    const bool is_resident = placement_.buckets()[b].is_resident;
    for (const SlabTensors& slab : slabs_[b])
      ops::fill(stream, {.x = is_resident ? slab.weights : slab.weight_shard, .value = 0.0});
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    for (const HeldPiece& held : held_weights(i)) initialise_piece(stream, seed, *parameters_[i].spec, held);
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
