#include "ops/cuda/rope_launch.h"

#include "ops/cuda/positions.cuh"
#include "ops/cuda/vector.cuh"

namespace megalith::ops::cuda {

namespace {

constexpr int kRopeThreads = 256;
constexpr int kRopeHeads = 4;  // per thread, which reads their angles once

template <class T>
struct RopeOperands {
  Rows<T> x;
  uint32_t half, heads;
  uint32_t groups;  // of kRopeHeads heads or fewer: those `groups` apart
  int64_t rows;
  RowPositions positions;
  Rows<float> cosines, sines;
  float direction;
};

// A thread turns one vector of the lower half, and the one it pairs with, of each head of a group. 2^32 threads would
// turn more than a GPU holds.
template <class T, int kWidth>
__global__ void __launch_bounds__(kRopeThreads) rope_kernel(RopeOperands<T> args) {
  const uint32_t vectors = args.half / kWidth;
  const uint32_t index = blockIdx.x * kRopeThreads + threadIdx.x;
  const uint32_t slot = index / vectors;
  const uint32_t row = slot / args.groups;
  if (row >= args.rows) return;
  const uint32_t channel = (index - slot * vectors) * kWidth;
  const uint32_t group = slot - row * args.groups;

  Vector<T, kWidth> low[kRopeHeads], high[kRopeHeads];
#pragma unroll
  for (uint32_t i = 0; i < kRopeHeads; ++i) {
    const uint32_t head = group + i * args.groups;
    if (head >= args.heads) continue;
    const T* at = args.x.at(row, int64_t{head} * 2 * args.half + channel);
    low[i] = load_once<kWidth>(at);
    high[i] = load_once<kWidth>(at + args.half);
  }
  const int64_t position = position_of(args.positions, row);
  const Vector<float, kWidth> cosine = load<kWidth>(args.cosines.at(position, channel));
  const Vector<float, kWidth> sine = load<kWidth>(args.sines.at(position, channel));
#pragma unroll
  for (uint32_t i = 0; i < kRopeHeads; ++i) {
    const uint32_t head = group + i * args.groups;
    if (head >= args.heads) continue;
    float turned_low[kWidth], turned_high[kWidth];
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      const float s = args.direction * sine[c];
      turned_low[c] = low[i][c] * cosine[c] - high[i][c] * s;
      turned_high[c] = high[i][c] * cosine[c] + low[i][c] * s;
    }
    T* at = args.x.at(row, int64_t{head} * 2 * args.half + channel);
    store(at, Vector<T, kWidth>::from(turned_low));
    store(at + args.half, Vector<T, kWidth>::from(turned_high));
  }
}

template <int kWidth, class T>
void launch(const RopeOperands<T>& args, void* stream) {
  const int64_t threads = args.rows * args.groups * (args.half / kWidth);
  if (threads == 0) return;
  rope_kernel<T, kWidth><<<static_cast<unsigned>(divide_up(threads, kRopeThreads)), kRopeThreads, 0,
                           static_cast<cudaStream_t>(stream)>>>(args);
}

}  // namespace

void launch_rope(const RopeLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t half = args.head_dim / 2;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const int64_t heads = args.extent.cols / args.head_dim;
    const RopeOperands<T> operands{Rows<T>(args.x),
                                   static_cast<uint32_t>(half),
                                   static_cast<uint32_t>(heads),
                                   static_cast<uint32_t>(divide_up(heads, kRopeHeads)),
                                   rows,
                                   args.positions,
                                   Rows<float>(args.cosines),
                                   Rows<float>(args.sines),
                                   args.inverse ? -1.0f : 1.0f};
    const bool wide = half % kFullWidth<T> == 0 && rows_aligned(args.x, rows, sizeof(T)) &&
                      rows_aligned(args.cosines, 2, sizeof(float)) && rows_aligned(args.sines, 2, sizeof(float));
    if (wide) {
      launch<kFullWidth<T>>(operands, stream);
    } else {
      launch<1>(operands, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
