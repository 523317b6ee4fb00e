#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace megalith::engine {

// What ranks settle with each other between steps. Every member of a group makes the same calls in the same order; each
// blocks the host.
class RankTalk {
 public:
  static constexpr int64_t kRoom = 4096;

  // `room`: (kRoom) i32 in the memory of the stream's device, the same size on all ranks.
  RankTalk(comm::Communicator& world, Stream& stream, const Tensor& room)
      : world_(world), stream_(stream), room_(room) {}

  // Broadcasts rank 0's string to all ranks.
  std::string broadcast(const std::string& text) { return broadcast(world_, text, 0); }
  // The same within another group, from one of its members.
  std::string broadcast(comm::Communicator& group, const std::string& text, int root);
  // Logical OR over all ranks, of one question or of many.
  bool any_rank(bool here) { return any_rank(std::vector<bool>{here}).front(); }
  std::vector<bool> any_rank(const std::vector<bool>& here);

  int rank() const { return world_.rank(); }
  int ranks() const { return world_.size(); }

 private:
  comm::Communicator& world_;
  Stream& stream_;
  Tensor room_;
};

}  // namespace megalith::engine
