#include "parallel/placement/state_owners.h"

#include <algorithm>

#include "parallel/mesh.h"

namespace megalith::parallel {

namespace {

struct NamedBox {
  size_t parameter = 0;  // of the table
  Box box;
};

// What the ranks at one place of the tensor and pipeline axes own of one shard of the optimizer.
std::vector<NamedBox> owned_boxes(const PlacementRequest& request, const Placement& placement, int64_t shard) {
  std::vector<NamedBox> boxes;
  for (const ShardPiece& held : placement.optimizer_shard(shard)) {
    const PlacedParameter& parameter = placement.parameters()[held.parameter];
    if (!parameter.is_owner) continue;
    for (const Piece& piece : held.pieces) {
      if (piece.is_owner()) boxes.push_back({request.table.index_of(parameter.spec->name), piece.box});
    }
  }
  return boxes;
}

// Replicas that hold the same share the work: each gives about as many elements, in whole rows.
void deal(const std::vector<NamedBox>& boxes, const std::vector<int>& replicas,
          std::vector<std::vector<OwnedBox>>& owners) {
  const auto count = static_cast<int64_t>(replicas.size());
  int64_t total = 0;
  for (const NamedBox& named : boxes) total += named.box.elements();
  int64_t dealt = 0;
  for (const NamedBox& named : boxes) {
    const int64_t columns = named.box.columns.size();
    for (Box rest = named.box; !rest.rows.empty();) {
      const int64_t replica = std::min(count - 1, dealt * count / total);
      const int64_t until = ceil_div((replica + 1) * total, count);
      const int64_t rows = std::clamp(ceil_div(until - dealt, columns), int64_t{1}, rest.rows.size());
      owners[named.parameter].push_back(
          {replicas[static_cast<size_t>(replica)], {{rest.rows.begin, rest.rows.begin + rows}, rest.columns}});
      rest.rows.begin += rows;
      dealt += rows * columns;
    }
  }
}

}  // namespace

std::vector<std::vector<OwnedBox>> owners_of_state(const PlacementRequest& request) {
  std::vector<std::vector<OwnedBox>> owners(request.table.size());
  const Mesh mesh(request.layout);
  for (int64_t stage = 0; stage < request.layout.pipeline; ++stage) {
    for (int64_t tensor = 0; tensor < request.layout.tensor; ++tensor) {
      const Placement placement(request, stage, tensor);
      const int first = mesh.rank_of({.tp = tensor, .pp = stage});
      const std::vector<int> replicas = mesh.group_of(first, {Axis::cp, Axis::dp});
      if (placement.shards() == 1) {
        deal(owned_boxes(request, placement, 0), replicas, owners);
        continue;
      }
      for (int64_t shard = 0; shard < placement.shards(); ++shard)
        deal(owned_boxes(request, placement, shard), {replicas[static_cast<size_t>(shard)]}, owners);
    }
  }
  return owners;
}

}  // namespace megalith::parallel
