#include "ops/optimizer.h"

#include <algorithm>

namespace megalith::ops {

namespace {

void check_tiles(const Contract& contract, const UpdateTiles& tiles) {
  contract.require(tiles.count == 0 || tiles.tiles != nullptr, "no tiles");
}

void check_scalars(const Contract& contract, const UpdateScalars* scalars) {
  contract.require(scalars != nullptr, "no update scalars");
}

double gradient_bytes(const UpdateTiles& tiles) {
  return static_cast<double>(tiles.elements * size_of(main_dtype(tiles.weights)));
}

OpCost update_cost(double bytes, const UpdateTiles& tiles) {
  return {.bytes = bytes, .shape = fmt::format("{} parameters", tiles.elements)};
}

}  // namespace

std::vector<UpdateTile> make_update_tiles(std::span<const UpdateTensors> parameters) {
  const auto at = [](const Tensor& tensor, int64_t element) {
    return static_cast<void*>(static_cast<std::byte*>(tensor.data) + element * size_of(tensor.dtype));
  };
  std::vector<UpdateTile> tiles;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const UpdateTensors& p = parameters[i];
    const int64_t elements = p.weights.elements();
    const DType main = main_dtype(p.weights.dtype);
    const auto require = [&](const Tensor& tensor, DType dtype) {
      MEGALITH_CHECK(tensor.dtype == dtype && tensor.elements() == elements && tensor.contiguous(),
                     "state of parameter {} is {} {}, its weights {} {}", i, name_of(tensor.dtype),
                     to_string(tensor.shape), name_of(p.weights.dtype), to_string(p.weights.shape));
    };
    for (const Tensor& tensor : {p.gradient, p.exp_avg, p.exp_avg_sq}) require(tensor, main);
    if (p.weights.dtype != main) require(p.remainder, DType::i16);
    for (int64_t begin = 0; begin < elements; begin += kUpdateTile) {
      tiles.push_back({.weights = at(p.weights, begin),
                       .remainder = p.weights.dtype == main ? nullptr : at(p.remainder, begin),
                       .gradient = at(p.gradient, begin),
                       .exp_avg = at(p.exp_avg, begin),
                       .exp_avg_sq = at(p.exp_avg_sq, begin),
                       .elements = static_cast<int32_t>(std::min(kUpdateTile, elements - begin)),
                       .parameter = static_cast<int32_t>(i),
                       .weight_decay = p.weight_decay});
    }
  }
  return tiles;
}

int64_t count_update_tiles(std::span<const UpdateTensors> parameters) {
  int64_t count = 0;
  for (const UpdateTensors& p : parameters) count += ceil_div(p.weights.elements(), kUpdateTile);
  return count;
}

void check(const Contract& contract, const SetUpdateScalars& args) {
  check_scalars(contract, args.scalars);
}
OpCost cost_of(const SetUpdateScalars&) {
  return {};
}

void check(const Contract& contract, const GradientNorm& args) {
  check_tiles(contract, args.tiles);
  contract.vector(args.partials, "partials", DType::f64, args.tiles.count);
  check_scalars(contract, args.scalars);
}
OpCost cost_of(const GradientNorm& args) {
  return update_cost(gradient_bytes(args.tiles), args.tiles);
}

void check(const Contract& contract, const ClipGradients& args) {
  check_scalars(contract, args.scalars);
}
OpCost cost_of(const ClipGradients&) {
  return {};
}

void check(const Contract& contract, const AdamW& args) {
  check_tiles(contract, args.tiles);
  check_scalars(contract, args.scalars);
}
// Reads the gradient; reads and writes both moments and the weights, which have the main dtype's bits in all.
OpCost cost_of(const AdamW& args) {
  return update_cost(7.0 * gradient_bytes(args.tiles), args.tiles);
}

}  // namespace megalith::ops
