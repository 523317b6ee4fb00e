#pragma once

#include "checkpoint/nodes/part_store.h"
#include "checkpoint/nodes/peers.h"

namespace megalith::checkpoint {

// Copies of what the ranks of another node hold, in the memory of this one: a node that is lost takes nothing along.
// Each rank keeps the part of the rank in its place on the node before, and is kept by that on the node after.
class PeerCopies {
 public:
  struct Options {
    std::filesystem::path directory;
    Part place = {};
    int64_t ranks_per_node = 1;
    Peers* peers = nullptr;  // must outlive it
  };
  // User error unless there are several nodes, all of the same number of ranks.
  explicit PeerCopies(Options options);

  int64_t source() const { return source_; }  // whose part this rank keeps
  int64_t keeper() const { return keeper_; }  // who keeps that of this one

  // For the keeper, while what is returned lives. So long the image must stay as it is.
  Offer offer(const FileDigests& shard, std::span<const std::byte> image) const;
  // Reads what the source offers, and keeps it once every byte is right. Copies of other steps go first, for lack of
  // room, but for `protected_step`.
  void keep(const Manifest& part, int64_t protected_step, int64_t generation) const;
  // All that this rank keeps.
  void remove() const;

 private:
  void make_room(const PartStore& store, int64_t protected_step) const;

  Options options_;
  int64_t source_;
  int64_t keeper_;
};

}  // namespace megalith::checkpoint
