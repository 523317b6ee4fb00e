#pragma once

#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/device.h"
#include "core/stream.h"
#include "data/batch.h"

namespace megalith::train {

// A micro batch in the memory of the device; what it does not have is absent.
struct DeviceBatch {
  Tensor ids, targets, weights, sample_ids, first_positions, document_starts, positions;
  Tensor document_bounds;  // absent, too, where there are more documents than room for them
};

// Room for a few micro batches in the memory of the device. Uploads do not wait for it: they go through some buffers in
// turn.
class BatchBuffers {
 public:
  struct Sizes {
    DType main = DType::f32;
    int64_t batch = 0;
    int64_t length = 0;
    int64_t count = 1;          // of micro batches
    int64_t document_room = 0;  // for how many documents there are bounds
  };
  BatchBuffers(Stream& stream, Arena& arena, const Sizes& sizes);

  void upload(Stream& stream, int64_t number, const data::MicroBatch& micro_batch);

  const DeviceBatch& operator[](int64_t number) const { return rooms_[static_cast<size_t>(number)].seen; }

 private:
  std::vector<int32_t> document_bounds(const data::MicroBatch& micro_batch) const;

  struct Room {
    DeviceBatch all;   // as allocated
    DeviceBatch seen;  // of the micro batch uploaded last
    Tensor bytes;      // of those tensors, which lie together
  };
  struct Staging {
    std::unique_ptr<StagingMemory> memory;
    StreamMark uploaded;
  };
  static constexpr int kStagings = 3;

  Sizes sizes_;
  std::vector<Room> rooms_;
  std::vector<Staging> stagings_;
  size_t next_ = 0;
};

}  // namespace megalith::train
