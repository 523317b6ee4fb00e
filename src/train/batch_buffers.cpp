#include "train/batch_buffers.h"

#include <cstring>

#include "data/document_bounds.h"

namespace megalith::train {

BatchBuffers::BatchBuffers(Stream& stream, Arena& arena, DType main, int64_t batch, int64_t length,
                           int64_t document_room)
    : batch_(batch), length_(length) {
  const int64_t tokens = batch * length;
  const int64_t begin = arena.used();
  ids_ = arena.allocate("ids", DType::i32, {tokens});
  targets_ = arena.allocate("targets", DType::i32, {tokens});
  document_starts_ = arena.allocate("document_starts", DType::i32, {tokens});
  positions_ = arena.allocate("positions", DType::i32, {tokens});
  weights_ = arena.allocate("weights", main, {tokens});
  sample_ids_ = arena.allocate("sample_ids", DType::i64, {batch});
  if (document_room > 0) document_bounds_ = arena.allocate("document_bounds", DType::i32, {document_room + 1});
  all_ = Tensor(ids_.data, DType::i32, {(arena.used() - begin) / size_of(DType::i32)}, stream.device());
  for (int i = 0; i < kStagings; ++i) {
    stagings_.push_back({.memory = std::make_unique<StagingMemory>(stream.device(), all_.bytes(), "batch")});
  }
}

void BatchBuffers::upload(Stream& stream, const data::MicroBatch& micro_batch) {
  MEGALITH_CHECK(micro_batch.batch == batch_ && micro_batch.length == length_,
                 "micro batch of {} x {} tokens, engine of {} x {}", micro_batch.batch, micro_batch.length, batch_,
                 length_);
  Staging& staging = stagings_[next_];
  next_ = (next_ + 1) % stagings_.size();
  staging.uploaded.wait();
  const auto place = [&](const Tensor& tensor) {
    return staging.memory->data() + (static_cast<std::byte*>(tensor.data) - static_cast<std::byte*>(all_.data));
  };
  const auto put = [&](const auto& values, const Tensor& tensor) {
    if (!values.empty()) std::memcpy(place(tensor), values.data(), static_cast<size_t>(tensor.bytes()));
  };
  put(micro_batch.inputs, ids_);
  put(micro_batch.targets, targets_);
  put(micro_batch.document_starts, document_starts_);
  const std::vector<int32_t> bounds = document_bounds(micro_batch);
  put(bounds, document_bounds_);
  put(micro_batch.position_ids, positions_);
  put(micro_batch.sample_ids, sample_ids_);
  dispatch_float(weights_.dtype, [&]<class T>(std::type_identity<T>) {
    T* weights = reinterpret_cast<T*>(place(weights_));
    for (size_t i = 0; i < micro_batch.weights.size(); ++i) weights[i] = T(micro_batch.weights[i]);
  });
  has_document_starts_ = !micro_batch.document_starts.empty();
  has_document_bounds_ = !bounds.empty();
  has_positions_ = !micro_batch.position_ids.empty();
  copy(stream, Tensor(staging.memory->data(), all_.dtype, all_.shape), all_);
  staging.uploaded.record(stream);
}

// Empty where there are none, no room for any, or too many.
std::vector<int32_t> BatchBuffers::document_bounds(const data::MicroBatch& micro_batch) const {
  if (!document_bounds_ || micro_batch.document_starts.empty()) return {};
  std::vector<int32_t> bounds = data::cu_seqlens(micro_batch.document_starts, length_);
  if (std::ssize(bounds) > document_bounds_.elements()) return {};
  bounds.resize(static_cast<size_t>(document_bounds_.elements()), bounds.back());
  return bounds;
}

}  // namespace megalith::train
