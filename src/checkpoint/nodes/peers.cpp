#include "checkpoint/nodes/peers.h"

#include <charconv>

#include "checkpoint/nodes/served_bytes.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace {

std::string place_key(int rank) {
  return fmt::format("shards/place/{}", rank);
}

// "4711 <secret>": the address is known.
std::string to_text(const comm::ByteServerAddress& server) {
  return fmt::format("{} {}", server.port, server.secret);
}

comm::ByteServerAddress from_text(const std::string& text, const std::string& address) {
  comm::ByteServerAddress server{.address = address};
  const size_t end = text.find(' ');
  std::from_chars(text.data(), text.data() + std::min(end, text.size()), server.port);
  if (end != std::string::npos) server.secret = text.substr(end + 1);
  return server;
}

}  // namespace

Peers::Peers(const comm::World& world, double deadline)
    : world_(world), deadline_(deadline), server_(world.places()[static_cast<size_t>(world.rank())].address) {
  world_.board().post(place_key(world_.rank()), to_text(server_.address()));
}

Offer::~Offer() {
  if (server_ != nullptr) server_->withdraw(name_);
}

Offer Peers::offer(const FileDigests& shard, comm::ByteServer::Read read) {
  server_.offer(served_name(shard), shard.bytes, std::move(read));
  return {server_, served_name(shard)};
}

ShardPlace Peers::place(int rank, const FileDigests& shard) {
  const std::string where = fmt::format("the copy that rank {} offers", rank);
  return {where, [this, rank, where, shard] { return served_shard(connect(rank), where, shard); }};
}

std::shared_ptr<comm::ByteReader> Peers::connect(int rank) {
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<comm::ByteReader> open = readers_[rank].lock()) return open;
  auto reader = as_io([&] {
    const std::string who = fmt::format("rank {}", rank);
    const std::string text = world_.board().await(place_key(rank), deadline_, "where to read the shards of " + who);
    const comm::ByteServerAddress server = from_text(text, world_.places()[static_cast<size_t>(rank)].address);
    return std::make_shared<comm::ByteReader>(server, who, deadline_);
  });
  readers_[rank] = reader;
  return reader;
}

}  // namespace megalith::checkpoint
