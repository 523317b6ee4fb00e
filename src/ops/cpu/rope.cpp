#include "ops/rope.h"

#include "ops/cpu/math.h"
#include "ops/cpu/positions.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

template <class T>
void rotate_head(T* low, T* high, const float* cosines, const float* sines, Main<T> direction, int64_t half) {
  using M = Main<T>;
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const auto a = static_cast<M>(low[i]);
    const auto b = static_cast<M>(high[i]);
    const auto c = static_cast<M>(cosines[i]);
    const M s = direction * static_cast<M>(sines[i]);
    low[i] = round_to<T>(a * c - b * s);
    high[i] = round_to<T>(b * c + a * s);
  }
}

}  // namespace

void rope(Stream& stream, const Rope& args) {
  const int64_t rows = args.x.rows();
  const int64_t heads = args.x.cols() / args.head_dim;
  const int64_t half = args.head_dim / 2;
  const Positions positions(args.positions, args.position_offset, args.length, rows, args.angles_cos.rows());
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    const auto direction = static_cast<Main<T>>(args.inverse ? -1 : 1);
    run_pieces(stream, rows, tile_rows(args.x.cols()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t position = positions.of(row);
        T* x = args.x.row<T>(row);
        for (int64_t head = 0; head < heads; ++head) {
          T* low = x + head * args.head_dim;
          rotate_head(low, low + half, args.angles_cos.row<float>(position), args.angles_sin.row<float>(position),
                      direction, half);
        }
      }
    });
  });
}

}  // namespace megalith::ops::cpu
