#include "ops/cuda/embedding_launch.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/positions.cuh"
#include "ops/cuda/reduce.cuh"

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

template <class T>
struct ScatterOperands {
  Rows<T> dout;
  const uint32_t* keys;  // sorted
  const uint32_t* rows;
  int count;
  uint32_t limit;
  Rows<float> gradient;
  int cols;
  unsigned run_blocks;  // in a span: those of the keys, then those of the positions
  Rows<float> positions_gradient;
  int positions, length;
};

constexpr int kScatterWarps = 8;   // of a block: a place in the sorted order, or a position, for each
constexpr int kScatterPieces = 2;  // vectors of each lane
constexpr int kScatterUnroll = 4;  // rows on their way at once
constexpr int kShortRun = 64;      // rows of one key that one warp sums
constexpr uint32_t kNoKey = 0xffffffffu;

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

// What a warp adds to a row of the gradient, which is read while the sums are made. The gradient comes and goes once:
// it leaves L2 to dout, which the positions read again.
template <int kWidth>
struct RowSums {
  Vector<float, kWidth> before[kScatterPieces];
  float sums[kScatterPieces][kWidth] = {};

  __device__ RowSums(const Span<kWidth>& span, const float* row) {
    span.each([&](int piece, int col) { before[piece] = load_streamed(row + col); });
  }
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
  __device__ void store(const Span<kWidth>& span, float* row) const {
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

// The sorted order, as the lanes of a warp read it.
template <class T>
__device__ uint32_t key_at(const ScatterOperands<T>& args, int place) {
  return 0 <= place && place < args.count ? args.keys[place] : kNoKey;
}
template <class T>
__device__ uint32_t row_at(const ScatterOperands<T>& args, int place) {
  return place < args.count ? args.rows[place] : 0;
}

// Adds the rows of places [begin, end), of which `rows` are those of the first lanes.
template <class T, int kWidth>
__device__ void add_run(const ScatterOperands<T>& args, const Span<kWidth>& span, uint32_t rows, int begin, int end,
                        RowSums<kWidth>& sums) {
  const int lane = static_cast<int>(threadIdx.x);
  for (int first = begin; first < end; first += kWarp) {
    if (first > begin) rows = row_at(args, first + lane);
    sums.add(span, args.dout, min(end - first, kWarp), [&](int i) { return __shfl_sync(kAllLanes, rows, i); });
  }
}

// The first place after `begin` that has another key.
template <class T>
__device__ int end_of_run(const ScatterOperands<T>& args, int begin, uint32_t key) {
  int low = begin;
  int high = args.count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (args.keys[middle] == key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A long run: each warp of the block sums an equal part, and the parts are added in their order.
template <class T, int kWidth>
__device__ void scatter_long(const ScatterOperands<T>& args, const Span<kWidth>& span, int begin, uint32_t key) {
  const int warp = static_cast<int>(threadIdx.y);
  const int lane = static_cast<int>(threadIdx.x);
  const int end = end_of_run(args, begin, key);
  const int part = (end - begin + kScatterWarps - 1) / kScatterWarps;
  const int first = min(end, begin + warp * part);
  float* gradient = args.gradient.at(key, 0);
  RowSums<kWidth> sums(span, gradient);
  add_run(args, span, row_at(args, first + lane), first, min(end, first + part), sums);

  __shared__ float parts[kScatterWarps][kScatterPieces * kWidth][kWarp];
#pragma unroll
  for (int i = 0; i < kScatterPieces * kWidth; ++i) parts[warp][i][lane] = sums.sums[i / kWidth][i % kWidth];
  __syncthreads();
  if (warp != 0) return;
#pragma unroll
  for (int i = 0; i < kScatterPieces * kWidth; ++i) {
    float total = 0.0f;
    for (int w = 0; w < kScatterWarps; ++w) total += parts[w][i][lane];
    sums.sums[i / kWidth][i % kWidth] = total;
  }
  sums.store(span, gradient);
}

// Places [first, first + kScatterWarps), a warp for each: where a run begins, it is summed.
template <class T, int kWidth>
__device__ void scatter_runs(const ScatterOperands<T>& args, const Span<kWidth>& span, int first) {
  const int lane = static_cast<int>(threadIdx.x);
  const int place = first + static_cast<int>(threadIdx.y);
  // Nothing that is read here depends on anything else that is.
  const uint32_t key_of_lane = key_at(args, first + lane);
  const uint32_t key_before = key_at(args, first + lane - 1);
  const uint32_t key_far = key_at(args, first + lane + kShortRun);
  const uint32_t near = key_at(args, place + 1 + lane);
  const uint32_t next = key_at(args, place + 1 + kWarp + lane);
  const uint32_t rows = row_at(args, place + lane);

  const bool begins = key_of_lane < args.limit && key_before != key_of_lane;
  const uint32_t begins_at = __ballot_sync(kAllLanes, begins);
  const uint32_t long_at = __ballot_sync(kAllLanes, begins && key_far == key_of_lane && lane < kScatterWarps);
  const uint32_t key = __shfl_sync(kAllLanes, key_of_lane, static_cast<int>(threadIdx.y));
  const uint32_t same = __ballot_sync(kAllLanes, near == key);
  const uint32_t same_next = __ballot_sync(kAllLanes, next == key);
  if (((begins_at & ~long_at) >> threadIdx.y & 1u) != 0) {
    float* gradient = args.gradient.at(key, 0);
    RowSums<kWidth> sums(span, gradient);
    add_run(args, span, rows, place, place + 1 + __popc(same) + __popc(same_next), sums);
    sums.store(span, gradient);
  }
  if (long_at == 0) return;
  const int at = __ffs(static_cast<int>(long_at)) - 1;  // the only one: it is longer than the block's places
  scatter_long(args, span, first + at, __shfl_sync(kAllLanes, key_of_lane, at));
}

// Positions that count along the samples: those of a position are `length` rows apart.
template <class T, int kWidth>
__device__ void scatter_position(const ScatterOperands<T>& args, const Span<kWidth>& span, int position) {
  if (position >= args.positions) return;
  float* gradient = args.positions_gradient.at(position, 0);
  RowSums<kWidth> sums(span, gradient);
  sums.add(span, args.dout, (args.count - position - 1) / args.length + 1,
           [&](int i) { return position + int64_t{i} * args.length; });
  sums.store(span, gradient);
}

// Blocks go through one span of columns after the other: the rows of a span are still in L2 when the positions, too,
// add them up.
template <class T, int kWidth>
__global__ void __launch_bounds__(kWarp* kScatterWarps, sizeof(T) == 2 ? 4 : 3)
    scatter_kernel(const __grid_constant__ ScatterOperands<T> args) {
  const Span<kWidth> span(blockIdx.y, args.cols);
  if (blockIdx.x < args.run_blocks) {
    scatter_runs(args, span, static_cast<int>(blockIdx.x) * kScatterWarps);
  } else {
    scatter_position(args, span, static_cast<int>((blockIdx.x - args.run_blocks) * kScatterWarps + threadIdx.y));
  }
}

template <class T, int kWidth>
void launch_sums(const ScatterOperands<T>& args, void* stream) {
  const auto position_blocks = static_cast<unsigned>(divide_up(args.positions, kScatterWarps));
  const dim3 blocks(args.run_blocks + position_blocks,
                    static_cast<unsigned>(divide_up(args.cols, Span<kWidth>::kCols)));
  scatter_kernel<T, kWidth><<<blocks, dim3(kWarp, kScatterWarps), 0, static_cast<cudaStream_t>(stream)>>>(args);
}

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
  const int64_t used = divide_up(4 * count, 64) * 64;  // the sort wants its memory at 256 bytes
  const SortLaunch sort{args.keys, args.first_key, args.limit,          keys,
                        rows,      count,          args.scratch + used, (args.scratch_elements - used) * 4};
  const int half = launch_sort(sort, stream);
  if (half < 0) return false;
  const int64_t positions = args.length < count ? args.length : count;
  dispatch(args.extent.element, [&](auto zero) {
    using T = decltype(zero);
    constexpr int kWidth = kFullWidth<float>;
    const ScatterOperands<T> operands{Rows<T>(args.dout),
                                      keys + half * count,
                                      rows + half * count,
                                      static_cast<int>(count),
                                      static_cast<uint32_t>(args.limit),
                                      Rows<float>(args.gradient),
                                      static_cast<int>(args.extent.cols),
                                      static_cast<unsigned>(divide_up(count, kScatterWarps)),
                                      Rows<float>(args.positions_gradient),
                                      static_cast<int>(positions),
                                      static_cast<int>(args.length)};
    if (args.extent.cols % kWidth == 0 && rows_aligned(args.dout, count, sizeof(T), kWidth * sizeof(T)) &&
        rows_aligned(args.gradient, args.limit, sizeof(float)) &&
        rows_aligned(args.positions_gradient, positions, sizeof(float))) {
      launch_sums<T, kWidth>(operands, stream);
    } else {
      launch_sums<T, 1>(operands, stream);
    }
  });
  return true;
}

}  // namespace megalith::ops::cuda
