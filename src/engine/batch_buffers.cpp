#include "engine/batch_buffers.h"

#include <cstring>

#include "data/document_bounds.h"

namespace megalith::engine {

BatchBuffers::BatchBuffers(Stream& stream, Arena& arena, const Sizes& sizes) : sizes_(sizes), side_(stream.beside()) {
  const int64_t tokens = sizes.batch * sizes.length;
  for (int64_t i = 0; i < sizes.count; ++i) {
    Room& room = rooms_.emplace_back();
    const int64_t begin = arena.used();
    room.all.ids = arena.allocate("ids", DType::i32, {tokens});
    room.all.targets = arena.allocate("targets", DType::i32, {tokens});
    room.all.document_starts = arena.allocate("document_starts", DType::i32, {tokens});
    room.all.positions = arena.allocate("positions", DType::i32, {tokens});
    room.all.weights = arena.allocate("weights", sizes.main, {tokens});
    room.all.sample_ids = arena.allocate("sample_ids", DType::i64, {sizes.batch});
    room.all.first_positions = arena.allocate("first_positions", DType::i32, {sizes.batch});
    if (sizes.document_room > 0) {
      room.all.document_bounds = arena.allocate("document_bounds", DType::i32, {sizes.document_room + 1});
    }
    const int64_t units = (arena.used() - begin) / size_of(DType::i32);
    room.bytes = Tensor(room.all.ids.data, DType::i32, {units}, stream.device());
    const auto order = [&] {
      return ops::RowOrder{.keys = arena.allocate("ordered keys", DType::i32, {tokens}),
                           .rows = arena.allocate("ordered rows", DType::i32, {tokens})};
    };
    if (sizes.ordered_ids > 0) room.all.order = order();
    if (sizes.ordered_positions > 0) room.all.positions_order = order();
  }
  if (sizes.ordered_ids > 0) {
    const int64_t elements = ops::row_order_scratch(stream.device(), tokens);
    order_scratch_ = arena.allocate("order", DType::i32, {elements});
  }
  if (stream.is_shadow()) return;
  const int64_t bytes = rooms_.front().bytes.bytes();
  for (int i = 0; i < kStagings; ++i) {
    stagings_.push_back({.memory = std::make_unique<StagingMemory>(stream.device(), bytes, "batch")});
  }
}

void BatchBuffers::upload(Stream& stream, int64_t number, const data::MicroBatch& micro_batch) {
  MEGALITH_CHECK(micro_batch.batch == sizes_.batch && micro_batch.length == sizes_.length,
                 "micro batch of {} x {} tokens, room for {} x {}", micro_batch.batch, micro_batch.length, sizes_.batch,
                 sizes_.length);
  Room& room = rooms_[static_cast<size_t>(number)];
  const bool is_shadow = stream.is_shadow();
  Staging nowhere;
  Staging& staging = is_shadow ? nowhere : stagings_[next_];
  if (!is_shadow) next_ = (next_ + 1) % stagings_.size();
  staging.uploaded.wait();
  const auto place = [&](const Tensor& tensor) {
    return staging.memory->data() + (static_cast<std::byte*>(tensor.data) - static_cast<std::byte*>(room.bytes.data));
  };
  const auto put = [&](const auto& values, const Tensor& tensor) {
    if (values.empty()) return Tensor();
    if (is_shadow) return tensor;
    std::memcpy(place(tensor), values.data(), static_cast<size_t>(tensor.bytes()));
    return tensor;
  };
  room.seen.ids = put(micro_batch.inputs, room.all.ids);
  room.seen.targets = put(micro_batch.targets, room.all.targets);
  room.seen.document_starts = put(micro_batch.document_starts, room.all.document_starts);
  room.seen.document_bounds = put(document_bounds(micro_batch), room.all.document_bounds);
  room.seen.positions = put(micro_batch.position_ids, room.all.positions);
  room.seen.sample_ids = put(micro_batch.sample_ids, room.all.sample_ids);
  room.seen.first_positions = put(micro_batch.first_positions, room.all.first_positions);
  room.seen.weights = room.all.weights;
  if (is_shadow) return;
  dispatch_float(sizes_.main, [&]<class T>(std::type_identity<T>) {
    T* weights = reinterpret_cast<T*>(place(room.all.weights));
    for (size_t i = 0; i < micro_batch.weights.size(); ++i) weights[i] = T(micro_batch.weights[i]);
  });
  copy(stream, Tensor(staging.memory->data(), room.bytes.dtype, room.bytes.shape), room.bytes);
  staging.uploaded.record(stream);
}

void BatchBuffers::start_order(Stream& stream, int64_t number) {
  Room& room = rooms_[static_cast<size_t>(number)];
  if (!room.all.order) return;
  const auto order = [&](const Tensor& given, int64_t limit, const ops::RowOrder& into) {
    if (!given || !into) return ops::RowOrder();
    ops::order_rows(side_, {.given = given, .limit = limit, .order = into, .scratch = order_scratch_});
    return into;
  };
  room.uploaded.record(stream);
  room.uploaded.hold(side_);
  room.seen.order = order(room.seen.ids, sizes_.ordered_ids, room.all.order);
  room.seen.positions_order = order(room.seen.positions, sizes_.ordered_positions, room.all.positions_order);
  room.ordered.record(side_);
}

// Empty where there are none, no room for any, or too many.
std::vector<int32_t> BatchBuffers::document_bounds(const data::MicroBatch& micro_batch) const {
  if (sizes_.document_room == 0 || micro_batch.document_starts.empty()) return {};
  std::vector<int32_t> bounds = data::cu_seqlens(micro_batch.document_starts, sizes_.length);
  if (std::ssize(bounds) > sizes_.document_room + 1) return {};
  bounds.resize(static_cast<size_t>(sizes_.document_room + 1), bounds.back());
  return bounds;
}

}  // namespace megalith::engine
