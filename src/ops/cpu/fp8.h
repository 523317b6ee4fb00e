#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <vector>

#include "ops/cpu/math.h"
#include "ops/cpu/tiles.h"
#include "ops/elementwise.h"

namespace megalith::ops::cpu {

inline void raise_amax(uint32_t* amax, uint32_t bits) {
  std::atomic_ref<uint32_t> shared(*amax);
  uint32_t seen = shared.load(std::memory_order_relaxed);
  while (seen < bits && !shared.compare_exchange_weak(seen, bits, std::memory_order_relaxed)) {
  }
}

template <class F, class M>
void cast_row(const Operand& y, int64_t row, const std::vector<M>& values, float scale) {
  F* along = y.rows ? y.rows.row<F>(row) : nullptr;
  F* down = y.columns ? y.columns.as<F>() + row : nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const F cast(static_cast<float>(values[i]) * scale);
    if (along != nullptr) along[i] = cast;
    if (down != nullptr) down[static_cast<int64_t>(i) * y.columns.row_stride] = cast;
  }
}

// y (rows, cols) in fp8, of rows that fill(row, values) computes from tensors of T. `partials`, or null: the column
// sums of each kColumnTile rows.
template <class T, class Fill>
void write_fp8(Stream& stream, const Operand& y, int64_t rows, int64_t cols, const Fill& fill,
               Main<T>* partials = nullptr) {
  const float scale = *y.slot.scale;
  run_pieces(stream, rows, kColumnTile, [&](int64_t begin, int64_t end) {
    thread_local std::vector<Main<T>> values;
    values.resize(static_cast<size_t>(cols));
    Main<T>* sums = partials == nullptr ? nullptr : partials + begin / kColumnTile * cols;
    if (sums != nullptr) std::fill(sums, sums + cols, Main<T>(0));
    uint32_t amax = 0;
    for (int64_t row = begin; row < end; ++row) {
      fill(row, values.data());
      for (const Main<T> value : values)
        amax = std::max(amax, std::bit_cast<uint32_t>(std::fabs(static_cast<float>(value))));
      for (int64_t i = 0; sums != nullptr && i < cols; ++i) sums[i] += values[static_cast<size_t>(i)];
      if (!y) continue;
      dispatch_fp8(y.rows ? y.rows.dtype : y.columns.dtype,
                   [&]<class F>(std::type_identity<F>) { cast_row<F>(y, row, values, scale); });
    }
    if (y.slot.amax != nullptr) raise_amax(y.slot.amax, amax);
  });
}

}  // namespace megalith::ops::cpu
