#include "checkpoint/format/shard_image.h"

#include <cstring>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {
SafetensorsLayout layout_of(const std::vector<ShardContent::Piece>& pieces) {
  std::vector<TensorSpec> specs;
  for (const ShardContent::Piece& piece : pieces) {
    specs.push_back({.name = stored_name(piece.kind, piece.name, piece.whole, piece.box),
                     .dtype = piece.dtype,
                     .shape = piece.box.extent});
  }
  return {specs, {{"format", "megalith"}}};
}
}  // namespace

ShardImage::ShardImage(std::vector<ShardContent::Piece> pieces)
    : pieces_(std::move(pieces)), layout_(layout_of(pieces_)) {}

void ShardImage::place_in(std::span<std::byte> memory) {
  MEGALITH_CHECK(static_cast<int64_t>(memory.size()) == bytes(), "{} bytes for an image of {}", memory.size(), bytes());
  memory_ = memory;
  std::memcpy(memory.data(), layout_.head.data(), layout_.head.size());
}

Tensor ShardImage::tensor(size_t index) const {
  return Tensor(memory_.data() + layout_.offsets[index], pieces_[index].dtype, pieces_[index].box.extent);
}

}  // namespace megalith::checkpoint
