#pragma once

#include "comm/local/local_world.h"
#include "core/rng.h"
#include "parallel/placement_bytes.h"
#include "parallel/replica_sync.h"
#include "parallel/transformer_table.h"

namespace megalith::parallel::testing {

// A model on a layout.
struct Setting {
  Transformer model;
  Layout layout = {};
  DType compute = DType::f32;
  ReplicaSyncOptions sync = {};
  int64_t bucket_elements = 3000;
};

// One rank of a layout with exactly the memory that is promised.
class LayoutRank {
 public:
  LayoutRank(comm::World& world, const Setting& setting, const ParameterTable& table)
      : mesh(setting.layout),
        place(mesh.coordinates_of(world.rank())),
        groups(make_groups(world, {.layout = setting.layout,
                                   .kv_heads = setting.model.kv_heads,
                                   .tied_embeddings = setting.model.has_tied_embeddings})),
        placement({.table = table,
                   .layout = setting.layout,
                   .layers = setting.model.layers,
                   .tied_embeddings = setting.model.has_tied_embeddings,
                   .bucket_elements = setting.bucket_elements},
                  place.pp, place.tp),
        replica(mesh.replica_of(world.rank())),
        bytes(bytes_of(placement, setting.compute, replica)),
        weights("weights", Device::cpu, bytes.weights),
        gradients("gradients", Device::cpu, bytes.gradients),
        scratch("scratch", Device::cpu, ReplicaSync::scratch_bytes(placement, setting.sync)),
        pool(1),
        stream(pool),
        store({.placement = placement, .compute = setting.compute, .replica = replica}, weights, &gradients),
        sync(store, groups, setting.sync, scratch) {}

  void reduce_all() {
    for (size_t bucket = 0; bucket < placement.buckets().size(); ++bucket) sync.start_reduce(stream, bucket);
    sync.finish_reductions(stream);
  }

  void gather_all() {
    for (int64_t chunk = 0; chunk < placement.chunks(); ++chunk) sync.start_gather(stream, chunk);
    for (int64_t chunk = 0; chunk < placement.chunks(); ++chunk) sync.wait_for_weights(stream, chunk);
  }

  Mesh mesh;
  Coordinates place;
  Groups groups;
  Placement placement;
  int64_t replica;
  PlacementBytes bytes;
  Arena weights, gradients, scratch;
  ThreadPool pool;
  Stream stream;
  ParameterStore store;
  ReplicaSync sync;
};

inline double value_at(const Tensor& tensor, int64_t element) {
  return dispatch_float(tensor.dtype, [&]<class T>(std::type_identity<T>) { return widen(tensor.as<T>()[element]); });
}

inline void set_value(const Tensor& tensor, int64_t element, double value) {
  dispatch_float(tensor.dtype, [&]<class T>(std::type_identity<T>) {
    tensor.as<T>()[element] = static_cast<T>(static_cast<float>(value));
  });
}

// visit(piece, element of the rank's own tensor, element of the whole parameter).
template <class Visit>
void for_each_element(const PlacedParameter& parameter, const Visit& visit) {
  const int64_t columns = parameter.columns();
  const int64_t whole_columns = parameter.spec->shape.rank() == 1 ? 1 : parameter.spec->shape[1];
  for (const Piece& piece : parameter.pieces) {
    for (int64_t row = 0; row < piece.box.rows.size(); ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        visit(piece, (piece.local_row + row) * columns + column,
              (piece.box.rows.begin + row) * whole_columns + piece.box.columns.begin + column);
      }
    }
  }
}

// Calls visit(memory of a slab, row, column) for all its padding.
template <class Visit>
void for_each_padding(const Placement& placement, const Slab& slab, const Visit& visit) {
  std::vector<bool> is_used(static_cast<size_t>(slab.rows), false);
  for (const Slab::Entry& entry : slab.entries) {
    const auto begin = is_used.begin() + entry.first_row;
    std::fill(begin, begin + placement.parameters()[entry.parameter].rows(), true);
  }
  for (int64_t element = 0; element < slab.elements(); ++element) {
    if (!is_used[static_cast<size_t>(element / slab.width)]) visit(element);
  }
}

// Sums of these, and of their squares, are exact: any order of addition gives the same bits.
inline double exact_value(uint64_t key, int64_t element) {
  const uint32_t word = philox(key, {static_cast<uint32_t>(element), 0, 0, 0})[0];
  return (static_cast<double>(word % 2048) - 1024.0) / 1024.0;
}

}  // namespace megalith::parallel::testing
