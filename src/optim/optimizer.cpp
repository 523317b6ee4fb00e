#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ops/elementwise.h"

namespace megalith::optim {

namespace {

Tensor bytes_on_host(const void* data, int64_t bytes) {
  return Tensor(const_cast<void*>(data), DType::i32, {bytes / size_of(DType::i32)});
}

Tensor allocate_bytes(Arena& arena, const char* what, int64_t bytes) {
  return arena.allocate(what, DType::i32, {div_exact(bytes, size_of(DType::i32))});
}

// Some rows, of `columns` elements each, of a tensor that may be absent.
Tensor rows_of(const Tensor& tensor, const parallel::Interval& rows, int64_t columns) {
  if (!tensor) return {};
  void* begin = static_cast<std::byte*>(tensor.data) + rows.begin * columns * size_of(tensor.dtype);
  return Tensor(begin, tensor.dtype, {rows.size(), columns}, tensor.device);
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, const parallel::ParameterStore& store, Stream& stream,
                     const OptimizerArenas& arenas)
    : options_(options), store_(store) {
  make_states(arenas);
  std::vector<parallel::ParameterRows> held;
  for (const State& state : states_) held.push_back({state.piece.parameter, state.piece.local_rows});
  updated_ = upload_tiles(stream, arenas.table, held);
  counted_ = upload_tiles(stream, arenas.table, store.placement().rows_in_norm(store.replica()));
  partials_ = arenas.table.allocate("squared norms", DType::f64, {counted_.count});
  scalars_ = allocate_bytes(arenas.table, "update scalars", sizeof(ops::UpdateScalars));
  const ops::UpdateScalars start;
  copy(stream, bytes_on_host(&start, sizeof(start)), scalars_);
  stream.wait();
}

void Optimizer::make_states(const OptimizerArenas& arenas) {
  struct SlabState {
    Tensor remainder, exp_avg, exp_avg_sq;
  };
  std::vector<std::vector<SlabState>> slabs;
  const std::vector<parallel::Bucket>& buckets = store_.placement().buckets();
  for (size_t b = 0; b < buckets.size(); ++b) {
    slabs.emplace_back();
    for (size_t s = 0; s < buckets[b].slabs.size(); ++s) {
      const parallel::SlabTensors& tensors = store_.slab(b, s);
      const DType main = tensors.gradient_shard.dtype;
      const Shape& shape = tensors.weight_shard.shape;
      const bool is_split = tensors.weight_shard.dtype != main;
      const SlabState& state = slabs.back().emplace_back(
          SlabState{.remainder = is_split ? arenas.masters.allocate("remainders", DType::i16, shape) : Tensor(),
                    .exp_avg = arenas.moments.allocate("exp_avg", main, shape),
                    .exp_avg_sq = arenas.moments.allocate("exp_avg_sq", main, shape)});
      for (const Tensor& tensor : {state.remainder, state.exp_avg, state.exp_avg_sq}) {
        if (tensor) slabs_.push_back(tensor);
      }
    }
  }
  for (parallel::ShardPiece& piece : store_.placement().optimizer_shard(store_.replica())) {
    const parallel::SlabTensors& tensors = store_.slab(piece.bucket, piece.slab);
    const SlabState& state = slabs[piece.bucket][piece.slab];
    const parallel::PlacedParameter& placed = store_.placement().parameters()[piece.parameter];
    const int64_t rows = piece.local_rows.size();
    const auto part = [&](const Tensor& slab) {
      if (!slab) return slab;
      return slab.slice_rows(piece.shard_row, piece.shard_row + rows).view(placed.shape_of(rows));
    };
    states_.push_back({.weight = part(tensors.weight_shard),
                       .gradient = part(tensors.gradient_shard),
                       .remainder = part(state.remainder),
                       .exp_avg = part(state.exp_avg),
                       .exp_avg_sq = part(state.exp_avg_sq)});
    states_.back().piece = std::move(piece);
  }
}

// `rows` lie within those of states_.
ops::UpdateTiles Optimizer::upload_tiles(Stream& stream, Arena& arena,
                                         const std::vector<parallel::ParameterRows>& rows) const {
  std::vector<ops::UpdateTensors> tensors;
  int64_t elements = 0;
  for (const parallel::ParameterRows& part : rows) {
    const auto state = std::find_if(states_.begin(), states_.end(),
                                    [&](const State& s) { return s.piece.parameter == part.parameter; });
    const parallel::Interval held = parallel::shifted(part.local_rows, -state->piece.local_rows.begin);
    const int64_t columns = store_.all()[part.parameter].placed->columns();
    const bool decays = store_.all()[part.parameter].spec->weight_decay;
    tensors.push_back({.weights = rows_of(state->weight, held, columns),
                       .remainder = rows_of(state->remainder, held, columns),
                       .gradient = rows_of(state->gradient, held, columns),
                       .exp_avg = rows_of(state->exp_avg, held, columns),
                       .exp_avg_sq = rows_of(state->exp_avg_sq, held, columns),
                       .weight_decay = static_cast<float>(decays ? options_.optim.weight_decay : 0.0)});
    elements += tensors.back().weights.elements();
  }
  const int64_t count = ops::count_update_tiles(tensors);
  const int64_t bytes = count * static_cast<int64_t>(sizeof(ops::UpdateTile));
  const Tensor table = allocate_bytes(arena, "update tiles", bytes);
  if (bytes > 0 && !stream.is_shadow()) {
    std::vector<ops::UpdateTile> tiles = ops::make_update_tiles(tensors);
    for (ops::UpdateTile& tile : tiles) {
      tile.parameter = static_cast<int32_t>(rows[static_cast<size_t>(tile.parameter)].parameter);
    }
    copy(stream, bytes_on_host(tiles.data(), bytes), table);
    stream.wait();
  }
  return {.tiles = static_cast<const ops::UpdateTile*>(table.data),
          .count = count,
          .elements = elements,
          .weights = store_.all().front().weight.dtype};
}

void Optimizer::initialise(Stream& stream) {
  for (Tensor slab : slabs_) {
    if (slab.dtype == DType::i16) slab.dtype = DType::bf16;  // whose zero is the same bits
    ops::fill(stream, {.x = slab, .value = 0.0});
  }
}

Tensor Optimizer::squared_norm() const {
  return Tensor(static_cast<std::byte*>(scalars_.data) + offsetof(ops::UpdateScalars, squared_norm), DType::f64, {1},
                scalars_.device);
}

void Optimizer::measure(Stream& stream, double learning_rate, int64_t update) const {
  const std::vector<double>& betas = options_.optim.betas;
  const auto correction = [&](double beta) {
    return static_cast<float>(1.0 - std::pow(beta, static_cast<double>(update)));
  };
  ops::set_update_scalars(stream, {.scalars = device_scalars(),
                                   .learning_rate = static_cast<float>(learning_rate),
                                   .bias_correction1 = correction(betas[0]),
                                   .bias_correction2 = correction(betas[1])});
  ops::gradient_norm(stream, {.tiles = counted_, .partials = partials_, .scalars = device_scalars()});
}

void Optimizer::apply(Stream& stream) const {
  const std::vector<double>& betas = options_.optim.betas;
  ops::clip_gradients(
      stream, {.scalars = device_scalars(), .max_norm = options_.clip_norm, .skip_stays = options_.stop_at_non_finite});
  ops::adamw(stream, {.tiles = updated_,
                      .scalars = device_scalars(),
                      .beta1 = betas[0],
                      .beta2 = betas[1],
                      .epsilon = options_.optim.eps});
}

}  // namespace megalith::optim
