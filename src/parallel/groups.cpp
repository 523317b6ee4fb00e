#include "parallel/groups.h"

namespace megalith::parallel {

Groups make_groups(comm::World& world, const GroupsRequest& request) {
  const Mesh mesh(request.layout);
  MEGALITH_CHECK(mesh.world() == world.size(), "a layout of {} ranks in a world of {}", mesh.world(), world.size());
  const int rank = world.rank();
  const auto make = [&](const char* name, std::vector<int> ranks) {
    std::unique_ptr<comm::Communicator> group = world.make_group(name, std::move(ranks));
    group->set_deadline(request.deadline);
    return group;
  };
  const int64_t kv_replicas = std::max<int64_t>(1, request.layout.tensor / request.kv_heads);
  Groups groups;
  groups.world = make("world", mesh.group_of(rank, {Axis::tp, Axis::cp, Axis::dp, Axis::pp}));
  groups.tensor = make("tensor", mesh.group_of(rank, {Axis::tp}));
  groups.context = make("context", mesh.group_of(rank, {Axis::cp}));
  groups.replicas = make("replicas", mesh.group_of(rank, {Axis::cp, Axis::dp}));
  groups.pipeline = make("pipeline", mesh.group_of(rank, {Axis::pp}));
  groups.embedding =
      make("embedding", request.tied_embeddings ? mesh.embedding_group_of(rank) : std::vector<int>{rank});
  groups.kv_heads = make("kv_heads", mesh.neighbours_of(rank, Axis::tp, kv_replicas));
  return groups;
}

}  // namespace megalith::parallel
