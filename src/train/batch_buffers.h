#pragma once

#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/device.h"
#include "core/stream.h"
#include "data/batch.h"

namespace megalith::train {

// One micro batch in the memory of the device. Uploads do not wait for the device: they go through a few buffers in
// turn.
class BatchBuffers {
 public:
  // document_room: for how many documents there are bounds; 0: for none.
  BatchBuffers(Stream& stream, Arena& arena, DType main, int64_t batch, int64_t length, int64_t document_room);

  void upload(Stream& stream, const data::MicroBatch& micro_batch);

  Tensor ids() const { return ids_; }
  Tensor targets() const { return targets_; }
  Tensor weights() const { return weights_; }
  Tensor sample_ids() const { return sample_ids_; }
  // Absent where the micro batch uploaded last had none.
  Tensor document_starts() const { return has_document_starts_ ? document_starts_ : Tensor(); }
  // Absent, too, where it had more documents than there is room for.
  Tensor document_bounds() const { return has_document_bounds_ ? document_bounds_ : Tensor(); }
  Tensor positions() const { return has_positions_ ? positions_ : Tensor(); }

 private:
  struct Staging {
    std::unique_ptr<StagingMemory> memory;
    StreamMark uploaded;
  };
  static constexpr int kStagings = 3;

  std::vector<int32_t> document_bounds(const data::MicroBatch& micro_batch) const;

  int64_t batch_;
  int64_t length_;
  Tensor ids_, targets_, document_starts_, positions_, weights_, sample_ids_, document_bounds_;
  Tensor all_;  // the bytes of the tensors above, which lie together
  bool has_document_starts_ = false;
  bool has_document_bounds_ = false;
  bool has_positions_ = false;
  std::vector<Staging> stagings_;
  size_t next_ = 0;
};

}  // namespace megalith::train
