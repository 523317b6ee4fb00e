#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "checkpoint/format/byte_source.h"
#include "checkpoint/format/file_digests.h"
#include "comm/store/byte_server.h"
#include "comm/world.h"

namespace megalith::checkpoint {

// What others may read. Nobody does any more when it has been destroyed.
class Offer {
 public:
  Offer(comm::ByteServer& server, std::string name) : server_(&server), name_(std::move(name)) {}
  ~Offer();
  Offer(Offer&& other) noexcept : server_(std::exchange(other.server_, nullptr)), name_(std::move(other.name_)) {}
  Offer& operator=(Offer&&) = delete;

 private:
  comm::ByteServer* server_;
  std::string name_;
};

// The way from rank to rank for shards: each offers some, and reads those of others. Every rank makes one.
class Peers {
 public:
  // `world` must outlive it. `deadline`: seconds for another to answer.
  Peers(const comm::World& world, double deadline);

  // Until what is returned is gone, which must be before this is.
  Offer offer(const FileDigests& shard, comm::ByteServer::Read read);

  // At a rank that offers it. Opened places must not outlive this. What the network does to them is an I/O error.
  ShardPlace place(int rank, const FileDigests& shard);

 private:
  // Places at the same rank share a connection.
  std::shared_ptr<comm::ByteReader> connect(int rank);

  const comm::World& world_;
  double deadline_;
  comm::ByteServer server_;
  std::mutex mutex_;
  std::map<int, std::weak_ptr<comm::ByteReader>> readers_;
};

}  // namespace megalith::checkpoint
