#include "ops/optimizer.h"

namespace megalith::ops {

std::vector<UpdateTile> make_update_tiles(std::span<const UpdateTensors> parameters) {
  const auto at = [](const Tensor& tensor, int64_t element) {
    return static_cast<void*>(static_cast<std::byte*>(tensor.data) + element * size_of(tensor.dtype));
  };
  std::vector<UpdateTile> tiles;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const UpdateTensors& p = parameters[i];
    const int64_t elements = p.weights.elements();
    const DType main = main_dtype(p.weights.dtype);
    const auto check = [&](const Tensor& tensor, DType dtype) {
      MEGALITH_CHECK(tensor.dtype == dtype && tensor.elements() == elements && tensor.contiguous(),
                     "state of parameter {} is {} {}, its weights {} {}", i, name_of(tensor.dtype),
                     to_string(tensor.shape), name_of(p.weights.dtype), to_string(p.weights.shape));
    };
    for (const Tensor& tensor : {p.gradient, p.exp_avg, p.exp_avg_sq}) check(tensor, main);
    if (p.weights.dtype != main) check(p.remainder, DType::i16);
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

}  // namespace megalith::ops
