#include "optim/optimizer.h"

#include <array>
#include <cmath>

#include "ops/elementwise.h"

namespace megalith::optim {

namespace {

Tensor bytes_on_host(const void* data, int64_t bytes) {
  return Tensor(const_cast<void*>(data), DType::i32, {bytes / size_of(DType::i32)});
}

Tensor allocate_bytes(Arena& arena, const char* what, int64_t bytes) {
  return arena.allocate(what, DType::i32, {div_exact(bytes, size_of(DType::i32))});
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, const parallel::ParameterStore& store, Stream& stream,
                     const OptimizerArenas& arenas)
    : options_(options), store_(store) {
  std::vector<ops::UpdateTensors> parameters;
  for (const parallel::Parameter& parameter : store.all()) {
    const DType main = parameter.gradient.dtype;
    const Shape& shape = parameter.weight.shape;
    const std::string& name = parameter.spec->name;
    const bool is_split = parameter.weight.dtype != main;
    const State& state =
        states_.emplace_back(State{.remainder = is_split ? arenas.masters.allocate(name, DType::i16, shape) : Tensor(),
                                   .exp_avg = arenas.moments.allocate(name, main, shape),
                                   .exp_avg_sq = arenas.moments.allocate(name, main, shape)});
    const double decay = parameter.spec->weight_decay ? options.optim.weight_decay : 0.0;
    parameters.push_back({.weights = parameter.weight,
                          .remainder = state.remainder,
                          .gradient = parameter.gradient,
                          .exp_avg = state.exp_avg,
                          .exp_avg_sq = state.exp_avg_sq,
                          .weight_decay = static_cast<float>(decay)});
  }
  const std::vector<ops::UpdateTile> tiles = ops::make_update_tiles(parameters);
  const auto bytes = static_cast<int64_t>(tiles.size() * sizeof(ops::UpdateTile));
  const Tensor table = allocate_bytes(arenas.table, "update tiles", bytes);
  copy(stream, bytes_on_host(tiles.data(), bytes), table);
  tiles_ = {.tiles = static_cast<const ops::UpdateTile*>(table.data),
            .count = std::ssize(tiles),
            .elements = store.table().elements(),
            .weights = store.all().front().weight.dtype};
  partials_ = arenas.table.allocate("squared norms", DType::f64, {tiles_.count});
  scalars_ = allocate_bytes(arenas.table, "update scalars", sizeof(ops::UpdateScalars));
  const ops::UpdateScalars start;
  copy(stream, bytes_on_host(&start, sizeof(start)), scalars_);
  stream.wait();
}

void Optimizer::initialise(Stream& stream) {
  for (const State& state : states_) {
    Tensor remainder = state.remainder;
    remainder.dtype = DType::bf16;  // whose zero is the same bits
    if (remainder) ops::fill(stream, {.x = remainder, .value = 0.0});
    ops::fill(stream, {.x = state.exp_avg, .value = 0.0});
    ops::fill(stream, {.x = state.exp_avg_sq, .value = 0.0});
  }
}

void Optimizer::update(Stream& stream, double learning_rate, int64_t update) {
  const std::vector<double>& betas = options_.optim.betas;
  const auto correction = [&](double beta) {
    return static_cast<float>(1.0 - std::pow(beta, static_cast<double>(update)));
  };
  ops::set_update_scalars(stream, {.scalars = device_scalars(),
                                   .learning_rate = static_cast<float>(learning_rate),
                                   .bias_correction1 = correction(betas[0]),
                                   .bias_correction2 = correction(betas[1])});
  ops::gradient_norm(stream, {.tiles = tiles_, .partials = partials_, .scalars = device_scalars()});
  ops::clip_gradients(
      stream, {.scalars = device_scalars(), .max_norm = options_.clip_norm, .skip_stays = options_.stop_at_non_finite});
  ops::adamw(stream, {.tiles = tiles_,
                      .scalars = device_scalars(),
                      .beta1 = betas[0],
                      .beta2 = betas[1],
                      .epsilon = options_.optim.eps});
}

}  // namespace megalith::optim
