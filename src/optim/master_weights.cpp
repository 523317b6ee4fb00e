#include "optim/master_weights.h"

namespace megalith::optim {

void join_masters(const Tensor& weights, const Tensor& remainder, const Tensor& master) {
  const bfloat16* high = weights.as<bfloat16>();
  const int16_t* low = remainder.as<int16_t>();
  float* joined = master.as<float>();
  for (int64_t i = 0; i < master.elements(); ++i) joined[i] = join_float(high[i], low[i]);
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
