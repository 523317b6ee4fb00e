#include "ops/cuda/embedding_launch.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/positions.cuh"

namespace megalith::ops::cuda {

namespace {

// ---- forward ----------------------------------------------------------------------------------------------------

constexpr int kLookupRows = 4;  // per thread

// Where the rows of a thread have their positions: nowhere, in one place, or each in its own.
enum class LookupPositions { none, shared, own };

// A row of the operation stands for kLookupRows rows of out, `distance` apart: those of a position in as many samples,
// where they share it. An id or a position that is none makes its row NaN: nothing else can be told from here.
template <class T, LookupPositions kPositions>
struct LookupOperation {
  static constexpr int kPositionRows = kPositions == LookupPositions::own ? kLookupRows : 1;
  template <int kWidth>
  struct Loaded {
    Vector<T, kWidth> tokens[kLookupRows], positions[kPositionRows];
  };
  const int32_t* ids;
  Rows<T> tokens, positions_table, out;
  int64_t vocabulary, positions_limit;
  RowPositions positions;
  int64_t rows, distance;
  int64_t first_id;
  bool is_part;

  template <int kWidth>
  __device__ static Vector<T, kWidth> entry(const Rows<T>& table, int64_t limit, int64_t index, int64_t col) {
    if (index < 0 || index >= limit) return Vector<T, kWidth>::filled(__int_as_float(0x7fffffff));
    return cuda::load<kWidth>(table.at(index, col));
  }
  __device__ int64_t first_row(int64_t row) const {
    if constexpr (kPositions != LookupPositions::shared) return row;
    const auto group = static_cast<uint32_t>(row) / static_cast<uint32_t>(distance);
    return row + int64_t{group} * (kLookupRows - 1) * distance;
  }

  // Zeros where another part of the table has the id.
  template <int kWidth>
  __device__ Vector<T, kWidth> token_of(int64_t row, int64_t col) const {
    const int64_t index = __ldg(ids + row) - first_id;
    if (is_part && (index < 0 || index >= vocabulary)) return Vector<T, kWidth>::filled(0.0f);
    return entry<kWidth>(tokens, vocabulary, index, col);
  }

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    const int64_t first = first_row(row);
    Loaded<kWidth> in;
    if constexpr (kPositions == LookupPositions::shared) {
      in.positions[0] = entry<kWidth>(positions_table, positions_limit, position_of(positions, first), col);
    }
#pragma unroll
    for (int i = 0; i < kLookupRows; ++i) {
      const int64_t at = first + i * distance;
      if (at >= rows) continue;
      in.tokens[i] = token_of<kWidth>(at, col);
      if constexpr (kPositions == LookupPositions::own) {
        in.positions[i] = entry<kWidth>(positions_table, positions_limit, position_of(positions, at), col);
      }
    }
    return in;
  }

  template <int kWidth>
  __device__ void store(int64_t row, int64_t col, const Loaded<kWidth>& in) const {
    const int64_t first = first_row(row);
#pragma unroll
    for (int i = 0; i < kLookupRows; ++i) {
      const int64_t at = first + i * distance;
      if (at >= rows) continue;
      if constexpr (kPositions == LookupPositions::none) {
        store_once(out.at(at, col), in.tokens[i]);
      } else {
        float values[kWidth];
#pragma unroll
        for (int c = 0; c < kWidth; ++c) values[c] = in.tokens[i][c] + in.positions[i % kPositionRows][c];
        store_once(out.at(at, col), Vector<T, kWidth>::from(values));
      }
    }
  }
};

template <class T, LookupPositions kPositions>
void launch_lookup(const EmbeddingForwardLaunch& args, void* stream) {
  const int64_t rows = args.extent.rows;
  const int64_t cols = args.extent.cols;
  const bool shared = kPositions == LookupPositions::shared;
  const int64_t distance = shared ? args.positions.length : divide_up(rows, kLookupRows);
  const LookupOperation<T, kPositions> operation{args.ids,
                                                 Rows<T>(args.tokens_table),
                                                 Rows<T>(args.positions_table),
                                                 Rows<T>(args.out),
                                                 args.vocabulary,
                                                 args.positions_limit,
                                                 args.positions,
                                                 rows,
                                                 distance,
                                                 args.first_id,
                                                 args.is_part};
  const int64_t operation_rows = divide_up(rows, distance * kLookupRows) * distance;
  const bool wide = cols % kFullWidth<T> == 0 && rows_aligned(args.out, rows, sizeof(T)) &&
                    rows_aligned(args.tokens_table, args.vocabulary, sizeof(T)) &&
                    rows_aligned(args.positions_table, args.positions_limit, sizeof(T));
  if (wide) {
    launch_elementwise<kFullWidth<T>, 1>(operation, operation_rows, cols, stream);
  } else {
    launch_elementwise<1, 1>(operation, operation_rows, cols, stream);
  }
}

// ---- backward: rows in the order of their keys ------------------------------------------------------------------

constexpr int kPrepareThreads = 256;

// A key that is none becomes `limit`, which sorts last and is passed over.
__global__ void prepare_kernel(const int32_t* keys, int64_t first_key, int64_t limit, uint32_t count,
                               uint32_t* sort_keys, uint32_t* sort_rows) {
  const uint32_t row = blockIdx.x * kPrepareThreads + threadIdx.x;
  if (row >= count) return;
  const int64_t key = keys[row] - first_key;
  sort_keys[row] = static_cast<uint32_t>(0 <= key && key < limit ? key : limit);
  sort_rows[row] = row;
}

template <class T>
struct ScatterOperands {
  Rows<T> dout;
  const uint32_t* keys;  // sorted
  const uint32_t* rows;
  int count;
  uint32_t limit;
  Rows<float> gradient;
  int cols;
};

constexpr int kScatterLanes = 32;  // vectors side by side, in the blocks of both kernels below
constexpr int kScatterUnroll = 4;  // rows on their way at once
constexpr int kShortRun = 64;      // rows of one key that one warp sums
constexpr int kShortWarps = 8;
constexpr int kLongWarps = 16;

// sums += rows [begin, end) of the sorted order, ascending.
template <int kWidth, class T>
__device__ void add_run(const ScatterOperands<T>& args, int begin, int end, int col, float (&sums)[kWidth]) {
  for (int first = begin; first < end; first += kScatterUnroll) {
    Vector<T, kWidth> held[kScatterUnroll];
#pragma unroll
    for (int i = 0; i < kScatterUnroll; ++i) {
      if (first + i < end) held[i] = load_once<kWidth>(args.dout.at(args.rows[first + i], col));
    }
#pragma unroll
    for (int i = 0; i < kScatterUnroll; ++i) {
      if (first + i >= end) continue;
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sums[c] += held[i][c];
    }
  }
}

// gradient += sums, 16 bytes at a time where there are as many.
template <int kWidth>
__device__ void add_to_gradient(float* gradient, const float (&sums)[kWidth]) {
  constexpr int kPiece = kWidth < 4 ? kWidth : 4;
#pragma unroll
  for (int first = 0; first < kWidth; first += kPiece) {
    const Vector<float, kPiece> before = cuda::load<kPiece>(gradient + first);
    float after[kPiece];
#pragma unroll
    for (int i = 0; i < kPiece; ++i) after[i] = before[i] + sums[first + i];
    cuda::store(gradient + first, Vector<float, kPiece>::from(after));
  }
}

// A warp for each place in the sorted order: the one at the begin of a run sums it, unless it is long.
template <class T, int kWidth>
__global__ void __launch_bounds__(kScatterLanes* kShortWarps) scatter_short_kernel(ScatterOperands<T> args) {
  const int place = static_cast<int>(blockIdx.x) * kShortWarps + static_cast<int>(threadIdx.y);
  const int col = static_cast<int>(blockIdx.y * kScatterLanes + threadIdx.x) * kWidth;
  if (place >= args.count || col >= args.cols) return;
  const uint32_t key = args.keys[place];
  const bool begins = place == 0 || args.keys[place - 1] != key;
  const bool is_long = place + kShortRun < args.count && args.keys[place + kShortRun] == key;
  if (!begins || is_long || key >= args.limit) return;
  int end = place + 1;
  while (end < args.count && args.keys[end] == key) ++end;
  float sums[kWidth] = {};
  add_run(args, place, end, col, sums);
  add_to_gradient(args.gradient.at(key, col), sums);
}

// The first place in [low, high) whose key is above `key` (or not below it, where `equal`).
__device__ inline int find_bound(const uint32_t* keys, int low, int high, uint32_t key, bool equal) {
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (keys[middle] < key || (!equal && keys[middle] == key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A block for each multiple of kShortRun in the sorted order, at least one of which lies in every long run; the first
// in a run sums it. Each warp takes an equal part, and the parts are added in their order.
template <class T, int kWidth>
__global__ void __launch_bounds__(kScatterLanes* kLongWarps) scatter_long_kernel(ScatterOperands<T> args) {
  const int place = static_cast<int>(blockIdx.x) * kShortRun;
  const uint32_t key = args.keys[place];
  if (key >= args.limit || (place >= kShortRun && args.keys[place - kShortRun] == key)) return;
  constexpr int kHalfRun = kShortRun / 2;  // a long run that begins less than kShortRun before holds one of these
  const bool reaches_back = place >= kHalfRun && args.keys[place - kHalfRun] == key;
  const bool reaches_on = place + kHalfRun < args.count && args.keys[place + kHalfRun] == key;
  if (!reaches_back && !reaches_on) return;
  const int begin = find_bound(args.keys, max(0, place - kShortRun), place, key, true);
  const int end = find_bound(args.keys, place, args.count, key, false);
  if (end - begin <= kShortRun) return;

  const int warp = static_cast<int>(threadIdx.y);
  const int lane = static_cast<int>(threadIdx.x);
  const int col = (static_cast<int>(blockIdx.y) * kScatterLanes + lane) * kWidth;
  const int part = (end - begin + kLongWarps - 1) / kLongWarps;
  float sums[kWidth] = {};
  if (col < args.cols) add_run(args, min(end, begin + warp * part), min(end, begin + (warp + 1) * part), col, sums);
  __shared__ float parts[kLongWarps][kWidth][kScatterLanes];
#pragma unroll
  for (int c = 0; c < kWidth; ++c) parts[warp][c][lane] = sums[c];
  __syncthreads();
  if (warp != 0 || col >= args.cols) return;
#pragma unroll
  for (int c = 0; c < kWidth; ++c) {
    sums[c] = 0.0f;
    for (int w = 0; w < kLongWarps; ++w) sums[c] += parts[w][c][lane];
  }
  add_to_gradient(args.gradient.at(key, col), sums);
}

template <class T, int kWidth>
void launch_sums(const ScatterOperands<T>& args, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const auto spans = static_cast<unsigned>(divide_up(args.cols, kScatterLanes * kWidth));
  const dim3 short_blocks(static_cast<unsigned>(divide_up(args.count, kShortWarps)), spans);
  scatter_short_kernel<T, kWidth><<<short_blocks, dim3(kScatterLanes, kShortWarps), 0, on>>>(args);
  const dim3 long_blocks(static_cast<unsigned>(divide_up(args.count, kShortRun)), spans);
  scatter_long_kernel<T, kWidth><<<long_blocks, dim3(kScatterLanes, kLongWarps), 0, on>>>(args);
}

int bits_of(int64_t value) {
  int bits = 1;
  while (value >> bits != 0) ++bits;
  return bits;
}

// ---- backward of positions that count along the samples: no sort is needed --------------------------------------

// Rows of the operation are positions.
template <class T>
struct PeriodicOperation {
  template <int kWidth>
  struct Loaded {};
  Rows<T> dout;
  int64_t rows, length;
  Rows<float> gradient;

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t, int64_t) const {
    return {};
  }
  template <int kWidth>
  __device__ void store(int64_t position, int64_t col, const Loaded<kWidth>&) const {
    float sums[kWidth] = {};
#pragma unroll 4
    for (int64_t row = position; row < rows; row += length) {
      const Vector<T, kWidth> in = load_once<kWidth>(dout.at(row, col));
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sums[c] += in[c];
    }
    add_to_gradient(gradient.at(position, col), sums);
  }
};

}  // namespace

void launch_embedding_forward(const EmbeddingForwardLaunch& args, void* stream) {
  if (args.extent.rows == 0) return;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    if (args.positions_table.data == nullptr) {
      launch_lookup<T, LookupPositions::none>(args, stream);
    } else if (args.positions.given == nullptr && args.extent.rows >= kLookupRows * args.positions.length) {
      launch_lookup<T, LookupPositions::shared>(args, stream);
    } else {
      launch_lookup<T, LookupPositions::own>(args, stream);
    }
  });
}

bool launch_scatter(const ScatterLaunch& args, void* stream) {
  const int64_t count = args.extent.rows;
  if (count == 0 || args.extent.cols == 0) return true;
  auto* keys = reinterpret_cast<uint32_t*>(args.scratch);
  uint32_t* rows = keys + 2 * count;
  prepare_kernel<<<static_cast<unsigned>(divide_up(count, kPrepareThreads)), kPrepareThreads, 0,
                   static_cast<cudaStream_t>(stream)>>>(args.keys, args.first_key, args.limit,
                                                        static_cast<uint32_t>(count), keys, rows);
  const int64_t used = divide_up(4 * count, 64) * 64;  // the sort wants its memory at 256 bytes
  const int half = launch_sort({keys, rows, count, bits_of(args.limit), args.scratch + used,
                                (args.scratch_elements - used) * static_cast<int64_t>(sizeof(int32_t))},
                               stream);
  if (half < 0) return false;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    const ScatterOperands<T> operands{Rows<T>(args.dout),
                                      keys + half * count,
                                      rows + half * count,
                                      static_cast<int>(count),
                                      static_cast<uint32_t>(args.limit),
                                      Rows<float>(args.gradient),
                                      static_cast<int>(args.extent.cols)};
    if (args.extent.cols % kFullWidth<T> == 0 && rows_aligned(args.dout, count, sizeof(T)) &&
        rows_aligned(args.gradient, args.limit, sizeof(float))) {
      launch_sums<T, kFullWidth<T>>(operands, stream);
    } else {
      launch_sums<T, 1>(operands, stream);
    }
  });
  return true;
}

void launch_scatter_periodic(const Extent& extent, const Matrix& dout, int64_t length, const Matrix& gradient,
                             void* stream) {
  const int64_t cols = extent.cols;
  dispatch(extent.element, [&](auto zero) {
    using T = decltype(zero);
    const PeriodicOperation<T> operation{Rows<T>(dout), extent.rows, length, Rows<float>(gradient)};
    const int64_t positions = length < extent.rows ? length : extent.rows;
    if (cols % kFullWidth<T> == 0 && rows_aligned(dout, extent.rows, sizeof(T)) &&
        rows_aligned(gradient, positions, sizeof(float))) {
      launch_elementwise<kFullWidth<T>, 1>(operation, positions, cols, stream);
    } else {
      launch_elementwise<1, 1>(operation, positions, cols, stream);
    }
  });
}

}  // namespace megalith::ops::cuda
