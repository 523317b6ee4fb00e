#include "checkpoint/peers.h"

#include <charconv>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {

std::string place_key(int rank) {
  return fmt::format("shards/place/{}", rank);
}

// "4711 <secret>": the address is known.
std::string to_text(const comm::ByteServerPlace& place) {
  return fmt::format("{} {}", place.port, place.secret);
}

comm::ByteServerPlace from_text(const std::string& text, const std::string& address) {
  comm::ByteServerPlace place{.address = address};
  const size_t end = text.find(' ');
  std::from_chars(text.data(), text.data() + std::min(end, text.size()), place.port);
  if (end != std::string::npos) place.secret = text.substr(end + 1);
  return place;
}

std::string name_of(const FileDigests& shard) {
  return fmt::format("{}-{}", shard.whole, shard.bytes);
}

// What goes wrong between two machines is one more way in which a place cannot be read.
template <class Action>
auto as_io(const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::comm) throw;
    fail(ErrorKind::io, "{}", error.what());
  }
}

class PeerSource final : public ByteSource {
 public:
  PeerSource(std::shared_ptr<comm::ByteReader> reader, std::string name, const FileDigests& shard)
      : reader_(std::move(reader)), name_(std::move(name)), offered_as_(name_of(shard)), bytes_(shard.bytes) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return bytes_; }
  void read_at(int64_t offset, std::span<std::byte> into) override {
    as_io([&] { reader_->read(offered_as_, offset, into); });
  }

 private:
  std::shared_ptr<comm::ByteReader> reader_;
  std::string name_;
  std::string offered_as_;
  int64_t bytes_;
};

}  // namespace

Peers::Peers(const comm::World& world, double deadline)
    : world_(world), deadline_(deadline), server_(world.places()[static_cast<size_t>(world.rank())].address) {
  world_.board().post(place_key(world_.rank()), to_text(server_.place()));
}

Offer::~Offer() {
  if (server_ != nullptr) server_->withdraw(name_);
}

Offer Peers::offer(const FileDigests& shard, comm::ByteServer::Read read) {
  server_.offer(name_of(shard), shard.bytes, std::move(read));
  return {server_, name_of(shard)};
}

Place Peers::place(int rank, const FileDigests& shard) {
  const std::string where = fmt::format("the copy that rank {} offers", rank);
  return {where, [this, rank, where, shard] { return std::make_unique<PeerSource>(connect(rank), where, shard); }};
}

std::shared_ptr<comm::ByteReader> Peers::connect(int rank) {
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<comm::ByteReader> open = readers_[rank].lock()) return open;
  auto reader = as_io([&] {
    const std::string who = fmt::format("rank {}", rank);
    const std::string text = world_.board().await(place_key(rank), deadline_, "where to read the shards of " + who);
    const comm::ByteServerPlace place = from_text(text, world_.places()[static_cast<size_t>(rank)].address);
    return std::make_shared<comm::ByteReader>(place, who, deadline_);
  });
  readers_[rank] = reader;
  return reader;
}

}  // namespace megalith::checkpoint
