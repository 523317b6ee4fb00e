#include "parallel/state_owners.h"

#include "parallel/mesh.h"

namespace megalith::parallel {

std::vector<std::vector<OwnedBox>> owners_of_state(const PlacementRequest& request) {
  std::vector<std::vector<OwnedBox>> owners(request.table.size());
  const Mesh mesh(request.layout);
  for (int64_t stage = 0; stage < request.layout.pipeline; ++stage) {
    for (int64_t tensor = 0; tensor < request.layout.tensor; ++tensor) {
      const Placement placement(request, stage, tensor);
      const int first = mesh.rank_of({.tp = tensor, .pp = stage});
      const std::vector<int> replicas = mesh.group_of(first, {Axis::cp, Axis::dp});
      for (int64_t shard = 0; shard < placement.shards(); ++shard) {
        for (const ShardPiece& held : placement.optimizer_shard(shard)) {
          const PlacedParameter& parameter = placement.parameters()[held.parameter];
          if (!parameter.is_owner) continue;
          std::vector<OwnedBox>& boxes = owners[request.table.index_of(parameter.spec->name)];
          for (const Piece& piece : held.pieces) {
            if (piece.is_owner()) boxes.push_back({replicas[static_cast<size_t>(shard)], piece.box});
          }
        }
      }
    }
  }
  return owners;
}

}  // namespace megalith::parallel
