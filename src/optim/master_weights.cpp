#include "optim/master_weights.h"

#include <algorithm>
#include <cstring>

namespace megalith::optim {

void join_masters(const Tensor& weights, const Tensor& remainder, const Tensor& master) {
  const bfloat16* high = weights.as<bfloat16>();
  const int16_t* low = remainder.as<int16_t>();
  float* joined = master.as<float>();
  for (int64_t i = 0; i < master.elements(); ++i) joined[i] = join_float(high[i], low[i]);
}

// Block by block from the front: what is written never reaches a remainder that was not yet read.
void join_masters_in_place(const Tensor& weights, const Tensor& master) {
  constexpr int64_t kBlock = 4096;
  const int64_t elements = master.elements();
  const auto* back = static_cast<const std::byte*>(master.data) + elements * size_of(DType::i16);
  int16_t block[kBlock];
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t count = std::min(kBlock, elements - begin);
    std::memcpy(block, back + begin * size_of(DType::i16), static_cast<size_t>(count * size_of(DType::i16)));
    const auto piece = [&](const Tensor& all) {
      return Tensor(static_cast<std::byte*>(all.data) + begin * size_of(all.dtype), all.dtype, {count});
    };
    join_masters(piece(weights), Tensor(block, DType::i16, {count}), piece(master));
  }
}

void split_masters(const Tensor& master, const Tensor& weights, const Tensor& remainder) {
  bfloat16* high = weights.as<bfloat16>();
  int16_t* low = remainder.as<int16_t>();
  const float* joined = master.as<float>();
  for (int64_t i = 0; i < master.elements(); ++i) {
    const SplitFloat parts = split_float(joined[i]);
    high[i] = parts.high;
    low[i] = parts.low;
  }
}

}  // namespace megalith::optim
