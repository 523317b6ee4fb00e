#pragma once

#include <memory>

#include "comm/world.h"
#include "parallel/mesh.h"

namespace megalith::parallel {

// The ranks with which this one works together; a group of one where there are none.
struct Groups {
  std::unique_ptr<comm::Communicator> world;
  std::unique_ptr<comm::Communicator> tensor;
  std::unique_ptr<comm::Communicator> context;
  std::unique_ptr<comm::Communicator> replicas;   // {cp, dp}: the same weights; its members count as optimizer shards
  std::unique_ptr<comm::Communicator> pipeline;   // members are stages
  std::unique_ptr<comm::Communicator> embedding;  // the two ends of the pipeline that share a tied embedding
  std::unique_ptr<comm::Communicator> kv_heads;   // tensor ranks that hold the same key and value heads
};

struct GroupsRequest {
  Layout layout = {};
  int64_t kv_heads = 0;
  bool tied_embeddings = false;
  double deadline = 600.0;  // seconds that a call may take
};

// Every rank of the world calls it, with the same request.
Groups make_groups(comm::World& world, const GroupsRequest& request);

}  // namespace megalith::parallel
