#pragma once

#include <span>
#include <vector>

#include "checkpoint/format/safetensors.h"
#include "checkpoint/store.h"

namespace megalith::checkpoint {

// The bytes of a shard in memory, exactly as they will be in its file: what is copied into tensors() is where it
// belongs.
class ShardImage {
 public:
  explicit ShardImage(std::vector<ShardContent::Piece> pieces);

  int64_t bytes() const { return layout_.bytes; }
  // Memory of this size, whose head it writes. It must outlive the image.
  void place_in(std::span<std::byte> memory);

  const std::vector<ShardContent::Piece>& pieces() const { return pieces_; }
  // Of pieces()[index].
  Tensor tensor(size_t index) const;
  std::span<const std::byte> memory() const { return memory_; }

 private:
  std::vector<ShardContent::Piece> pieces_;
  SafetensorsLayout layout_;
  std::span<std::byte> memory_;
};

}  // namespace megalith::checkpoint
