#include "ops/cuda/reduce.cuh"
#include "ops/cuda/vector.cuh"
#include "ops/cuda/vocabulary/embedding_launch.h"

// Rows are added to the gradient in the order of their keys, in which those of a key are a run. A short one is summed
// by a warp. In text some runs are a hundred times longer than the rest; such a one is summed in parts, those that fall
// into windows of fixed places, and then over the parts.

namespace megalith::ops::cuda {

namespace {

constexpr int kScatterWarps = 4;   // of a block: a place in the sorted order, a position or a window for each
constexpr int kScatterPieces = 3;  // vectors of each lane
constexpr int kScatterUnroll = 2;  // rows on their way at once; more take registers, and with them warps
constexpr int kWindow = kScatterWindow;
static_assert(kWindow == kWarp, "a lane for each place of a window");
constexpr uint32_t kNoKey = 0xffffffffu;

template <class T>
struct ScatterOperands {
  Rows<T> dout;
  const int32_t* keys;  // sorted
  const int32_t* rows;
  int count;
  uint32_t first_key;
  uint32_t limit;
  Rows<float> gradient;
  int cols;
  unsigned position_blocks;  // in a span: before those of the keys
  Rows<float> positions_gradient;
  int positions, length;
  Rows<float> parts;  // two rows for each window: of a long run from before, and of one that begins in it
};

// The columns of a warp. A vector is 16 bytes of the gradient, not of dout, and those of a lane are a warp's width
// apart: side by side, lanes write whole sectors.
template <int kWidth>
struct Span {
  static constexpr int kCols = kScatterPieces * kWarp * kWidth;
  int first, cols;

  __device__ Span(unsigned index, int all)
      : first(static_cast<int>(index) * kCols + static_cast<int>(threadIdx.x) * kWidth), cols(all) {}

  // body(piece, its first column)
  template <class Body>
  __device__ void each(const Body& body) const {
#pragma unroll
    for (int piece = 0; piece < kScatterPieces; ++piece) {
      const int col = first + piece * kWarp * kWidth;
      if (col < cols) body(piece, col);
    }
  }
};

// What a warp holds of a row of the gradient. It comes and goes once: it leaves L2 to dout, which is read twice.
template <int kWidth>
struct GradientRow {
  float* row;
  Vector<float, kWidth> before[kScatterPieces];

  __device__ GradientRow(const Span<kWidth>& span, float* from) : row(from) {
    span.each([&](int piece, int col) { before[piece] = load_streamed(row + col); });
  }
  __device__ void add(const Span<kWidth>& span, const float (&sums)[kScatterPieces][kWidth]) const {
    span.each([&](int piece, int col) {
      float after[kWidth];
#pragma unroll
      for (int c = 0; c < kWidth; ++c) after[c] = before[piece][c] + sums[piece][c];
      store_once(row + col, Vector<float, kWidth>::from(after));
    });
  }

  __device__ static Vector<float, kWidth> load_streamed(const float* from) {
    if constexpr (kWidth == 4) {
      const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(from));
      return {{bits.x, bits.y, bits.z, bits.w}};
    } else {
      return cuda::load<kWidth>(from);
    }
  }
};

// What a warp adds to it.
template <int kWidth>
struct RowSums {
  float sums[kScatterPieces][kWidth] = {};

  // Adds rows row_of(0 ... count - 1) of dout in this order. All lanes ask for a row together.
  template <class T, class RowOf>
  __device__ void add(const Span<kWidth>& span, const Rows<T>& dout, int count, const RowOf& row_of) {
    for (int first = 0; first < count; first += kScatterUnroll) {
      Vector<T, kWidth> held[kScatterUnroll][kScatterPieces];
#pragma unroll
      for (int i = 0; i < kScatterUnroll; ++i) {
        const int64_t row = row_of(first + i);
        if (first + i >= count) continue;
        span.each([&](int piece, int col) { held[i][piece] = load_once<kWidth>(dout.at(row, col)); });
      }
#pragma unroll
      for (int i = 0; i < kScatterUnroll; ++i) {
        if (first + i >= count) continue;
        span.each([&](int piece, int) {
#pragma unroll
          for (int c = 0; c < kWidth; ++c) sums[piece][c] += held[i][piece][c];
        });
      }
    }
  }
};

// The sorted order, as the lanes of a warp read it. A key before the first is beyond the limit, too.
template <class T>
__device__ uint32_t key_at(const ScatterOperands<T>& args, int place) {
  return 0 <= place && place < args.count ? static_cast<uint32_t>(args.keys[place]) - args.first_key : kNoKey;
}
template <class T>
__device__ int32_t row_at(const ScatterOperands<T>& args, int place) {
  return place < args.count ? args.rows[place] : 0;
}
__device__ inline int lanes_with(uint32_t key_of_lane, uint32_t key) {
  return __popc(__ballot_sync(kAllLanes, key_of_lane == key));
}

// How many places at the beginning of a window belong to a long run from before, and how many at its end to one that
// begins in it.
struct LongParts {
  int from_before = 0;
  int begun = 0;
  uint32_t begun_key = kNoKey;
};
template <class T>
__device__ LongParts long_parts(const ScatterOperands<T>& args, int begin) {
  const int lane = static_cast<int>(threadIdx.x);
  const uint32_t before = key_at(args, begin - kWindow + lane);
  const uint32_t here = key_at(args, begin + lane);
  const uint32_t after = key_at(args, begin + kWindow + lane);
  const uint32_t first = __shfl_sync(kAllLanes, here, 0);
  const uint32_t last = __shfl_sync(kAllLanes, here, kWindow - 1);
  const bool goes_on = first < args.limit && first == __shfl_sync(kAllLanes, before, kWindow - 1);
  LongParts parts;
  if (goes_on) {
    const int places = lanes_with(here, first);
    if (lanes_with(before, first) + places + lanes_with(after, first) > kWindow) parts.from_before = places;
  }
  if (last < args.limit && !(goes_on && last == first)) {
    const int places = lanes_with(here, last);
    if (places + lanes_with(after, last) > kWindow) {
      parts.begun = places;
      parts.begun_key = last;
    }
  }
  return parts;
}

// Leaves the sums of the parts of long runs in the window that begins here.
template <class T, int kWidth>
__device__ void leave_parts(const ScatterOperands<T>& args, const Span<kWidth>& span, int begin, int32_t rows) {
  const LongParts long_runs = long_parts(args, begin);
  const auto leave = [&](int first, int count, int64_t part) {
    if (count == 0) return;
    RowSums<kWidth> sums;
    sums.add(span, args.dout, count, [&](int i) { return __shfl_sync(kAllLanes, rows, first + i); });
    span.each(
        [&](int piece, int col) { store(args.parts.at(part, col), Vector<float, kWidth>::from(sums.sums[piece])); });
  };
  const int64_t window = begin / kWindow;
  leave(0, long_runs.from_before, 2 * window);
  leave(kWindow - long_runs.begun, long_runs.begun, 2 * window + 1);
}

// Sums the short run that begins at this place, where one does, and the parts of the window.
template <class T, int kWidth>
__device__ void scatter_run(const ScatterOperands<T>& args, const Span<kWidth>& span, int place) {
  const int lane = static_cast<int>(threadIdx.x);
  // Nothing that is read here depends on anything else that is.
  const uint32_t previous = key_at(args, place - 1);
  const uint32_t key = key_at(args, place);
  const uint32_t next = key_at(args, place + 1 + lane);
  const int32_t rows = row_at(args, place + lane);
  const int more = lanes_with(next, key);
  if (key < args.limit && key != previous && more < kWindow) {
    const GradientRow<kWidth> gradient(span, args.gradient.at(key, 0));
    RowSums<kWidth> sums;
    sums.add(span, args.dout, 1 + more, [&](int i) { return __shfl_sync(kAllLanes, rows, i); });
    gradient.add(span, sums.sums);
  }
  if (place % kWindow == 0) leave_parts(args, span, place, rows);
}

// Positions that count along the samples: those of a position are `length` rows apart.
template <class T, int kWidth>
__device__ void scatter_position(const ScatterOperands<T>& args, const Span<kWidth>& span, int position) {
  if (position >= args.positions) return;
  RowSums<kWidth> sums;
  sums.add(span, args.dout, (args.count - position - 1) / args.length + 1,
           [&](int i) { return position + int64_t{i} * args.length; });
  GradientRow<kWidth>(span, args.positions_gradient.at(position, 0)).add(span, sums.sums);
}

// Blocks go through one span of columns after the other. Those of the positions come first: they read dout from one end
// to the other, and while they add up many rows each, the others, which find some of it in L2, fill the device.
template <class T, int kWidth>
__global__ void __launch_bounds__(kWarp* kScatterWarps, sizeof(T) == 2 ? 8 : 6)
    scatter_kernel(const __grid_constant__ ScatterOperands<T> args) {
  const Span<kWidth> span(blockIdx.y, args.cols);
  const bool is_position = blockIdx.x < args.position_blocks;
  const unsigned block = is_position ? blockIdx.x : blockIdx.x - args.position_blocks;
  const int warp = static_cast<int>(block * kScatterWarps + threadIdx.y);
  if (is_position) {
    scatter_position(args, span, warp);
  } else {
    scatter_run(args, span, warp);
  }
}

// Adds the parts of the long run that begins in a window, where one does.
template <class T, int kWidth>
__global__ void __launch_bounds__(kWarp* kScatterWarps)
    add_parts_kernel(const __grid_constant__ ScatterOperands<T> args) {
  const Span<kWidth> span(blockIdx.y, args.cols);
  const int window = static_cast<int>(blockIdx.x * kScatterWarps + threadIdx.y);
  const int begin = window * kWindow;
  const LongParts long_runs = long_parts(args, begin);
  if (long_runs.begun == 0) return;
  const uint32_t key = long_runs.begun_key;
  const GradientRow<kWidth> gradient(span, args.gradient.at(key, 0));
  int more = 0;  // windows
  int found = kWarp;
  while (found == kWarp) {
    found = lanes_with(key_at(args, begin + (1 + more + static_cast<int>(threadIdx.x)) * kWindow), key);
    more += found;
  }
  RowSums<kWidth> sums;
  sums.add(span, args.parts, 1 + more, [&](int i) { return 2 * (int64_t{window} + i) + (i == 0 ? 1 : 0); });
  gradient.add(span, sums.sums);
}

template <class T, int kWidth>
void launch_sums(const ScatterOperands<T>& args, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const auto spans = static_cast<unsigned>(divide_up(args.cols, Span<kWidth>::kCols));
  const auto blocks_of = [](int64_t warps) { return static_cast<unsigned>(divide_up(warps, kScatterWarps)); };
  const dim3 block(kWarp, kScatterWarps);
  scatter_kernel<T, kWidth><<<dim3(args.position_blocks + blocks_of(args.count), spans), block, 0, on>>>(args);
  if (args.count <= kWindow) return;
  add_parts_kernel<T, kWidth><<<dim3(blocks_of(divide_up(args.count, kWindow)), spans), block, 0, on>>>(args);
}

}  // namespace

void launch_scatter(const ScatterLaunch& args, void* stream) {
  const int64_t count = args.extent.rows;
  const int64_t cols = args.extent.cols;
  if (count == 0 || cols == 0) return;
  const int64_t positions = args.length < count ? args.length : count;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kWidth = kFullWidth<float>;
    const ScatterOperands<T> operands{Rows<T>(args.dout),
                                      args.keys,
                                      args.rows,
                                      static_cast<int>(count),
                                      static_cast<uint32_t>(args.first_key),
                                      static_cast<uint32_t>(args.limit),
                                      Rows<float>(args.gradient),
                                      static_cast<int>(cols),
                                      static_cast<unsigned>(divide_up(positions, kScatterWarps)),
                                      Rows<float>(args.positions_gradient),
                                      static_cast<int>(positions),
                                      static_cast<int>(args.length),
                                      Rows<float>(Matrix{args.parts, cols})};
    if (cols % kWidth == 0 && rows_aligned(args.dout, count, sizeof(T), kWidth * sizeof(T)) &&
        rows_aligned(args.gradient, args.limit, sizeof(float)) &&
        rows_aligned(args.positions_gradient, positions, sizeof(float))) {
      launch_sums<T, kWidth>(operands, stream);
    } else {
      launch_sums<T, 1>(operands, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
