#pragma once

#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/device.h"
#include "core/stream.h"
#include "data/batch.h"
#include "ops/vocabulary/row_order.h"

namespace megalith::engine {

// A micro batch in the memory of the device; what it does not have is absent.
struct DeviceBatch {
  Tensor ids, targets, weights, sample_ids, first_positions, document_starts, positions;
  Tensor document_bounds;  // absent, too, where there are more documents than room for them
  ops::RowOrder order, positions_order;
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
    // Rows are put in the order of their ids and of their positions, all of which are below these. 0: they are not.
    int64_t ordered_ids = 0;
    int64_t ordered_positions = 0;
  };
  BatchBuffers(Stream& stream, Arena& arena, const Sizes& sizes);

  void upload(Stream& stream, int64_t number, const data::MicroBatch& micro_batch);
  // Puts the rows of what was uploaded last in order, beside what the stream is asked for from here on. Before others
  // are uploaded there, it must wait for that.
  void start_order(Stream& stream, int64_t number);
  void wait_for_order(Stream& stream, int64_t number) const {
    rooms_[static_cast<size_t>(number)].ordered.hold(stream);
  }

  const DeviceBatch& operator[](int64_t number) const { return rooms_[static_cast<size_t>(number)].seen; }

 private:
  std::vector<int32_t> document_bounds(const data::MicroBatch& micro_batch) const;

  struct Room {
    DeviceBatch all;   // as allocated
    DeviceBatch seen;  // of the micro batch uploaded last
    Tensor bytes;      // of those that are uploaded, which lie together
    StreamMark uploaded;
    StreamMark ordered;
  };
  struct Staging {
    std::unique_ptr<StagingMemory> memory;
    StreamMark uploaded;
  };
  static constexpr int kStagings = 3;

  Sizes sizes_;
  Stream side_;  // orders rows
  Tensor order_scratch_;
  std::vector<Room> rooms_;
  std::vector<Staging> stagings_;
  size_t next_ = 0;
};

}  // namespace megalith::engine
