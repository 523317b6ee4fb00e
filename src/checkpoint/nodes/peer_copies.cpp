#include "checkpoint/nodes/peer_copies.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/format/verified_bytes.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace {

std::vector<ShardContent::Piece> pieces_of(const Manifest& part) {
  std::vector<ShardContent::Piece> pieces;
  for (const TensorInfo& tensor : part.tensors) {
    for (const TensorPiece& piece : tensor.pieces)
      pieces.push_back({tensor.name, tensor.kind, tensor.dtype, tensor.shape, piece.box});
  }
  return pieces;
}

void copy(VerifiedBytes& from, const FileDigests& shard, File& to) {
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(shard.bytes, shard.chunk_bytes)));
  for (int64_t offset = 0; offset < shard.bytes; offset += shard.chunk_bytes) {
    const auto piece = std::span(chunk).first(static_cast<size_t>(std::min(shard.chunk_bytes, shard.bytes - offset)));
    from.read_at(offset, piece);
    to.write(piece);
  }
}

}  // namespace

PeerCopies::PeerCopies(Options options)
    : options_(std::move(options)),
      source_((options_.place.rank + options_.place.ranks - options_.ranks_per_node) % options_.place.ranks),
      keeper_((options_.place.rank + options_.ranks_per_node) % options_.place.ranks) {
  if (options_.place.ranks <= options_.ranks_per_node || options_.place.ranks % options_.ranks_per_node != 0)
    user_error("{} ranks, {} on each node: there is no other node to keep copies", options_.place.ranks,
               options_.ranks_per_node);
}

Offer PeerCopies::offer(const FileDigests& shard, std::span<const std::byte> image) const {
  return options_.peers->offer(shard, [image](int64_t offset, std::span<std::byte> into) {
    std::memcpy(into.data(), image.data() + offset, into.size());
  });
}

void PeerCopies::keep(const Manifest& part, int64_t protected_step, int64_t generation) const {
  const PartStore store(options_.directory);
  make_room(store, protected_step);
  const FileDigests& shard = part.shards.front().digests;
  VerifiedBytes bytes(options_.peers->place(static_cast<int>(source_), shard).open(), shard);
  const auto write = [&](File& file) {
    copy(bytes, shard, file);
    return shard;
  };
  store.save(part.state, *part.part, {.pieces = pieces_of(part), .write = write}, generation);
}

// A run may have had its ranks on other nodes before: what nobody renews is of no use once a newer step is complete.
void PeerCopies::make_room(const PartStore& store, int64_t protected_step) const {
  const int64_t source_node = source_ / options_.ranks_per_node;
  for (const HeldPart& held : store.list()) {
    const int64_t rank = held.manifest.part->rank;
    if (rank == source_ || rank / options_.ranks_per_node != source_node)
      store.retain(rank, {.keep = 0, .protected_step = protected_step});
  }
}

void PeerCopies::remove() const {
  PartStore(options_.directory).retain(source_, {.keep = 0});
}

}  // namespace megalith::checkpoint
