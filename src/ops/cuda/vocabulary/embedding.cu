#include "ops/cuda/vocabulary/embedding_launch.h"

#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/positions.cuh"

namespace megalith::ops::cuda {

namespace {

constexpr int kLookupRows = 4;  // per thread
constexpr float kNone = __builtin_nanf("");

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

  // Left in L1, as all samples read the same positions; the rows of tokens are not.
  template <int kWidth>
  __device__ Vector<T, kWidth> position_at(int64_t row, int64_t col) const {
    const int64_t index = position_of(positions, row);
    if (index < 0 || index >= positions_limit) return Vector<T, kWidth>::filled(kNone);
    return cuda::load<kWidth>(positions_table.at(index, col));
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
    if (index < 0 || index >= vocabulary) return Vector<T, kWidth>::filled(is_part ? 0.0f : kNone);
    return load_once<kWidth>(tokens.at(index, col));
  }

  template <int kWidth>
  __device__ Loaded<kWidth> load(int64_t row, int64_t col) const {
    const int64_t first = first_row(row);
    Loaded<kWidth> in;
    if constexpr (kPositions == LookupPositions::shared) {
      in.positions[0] = position_at<kWidth>(first, col);
    }
#pragma unroll
    for (int i = 0; i < kLookupRows; ++i) {
      const int64_t at = first + i * distance;
      if (at >= rows) continue;
      in.tokens[i] = token_of<kWidth>(at, col);
      if constexpr (kPositions == LookupPositions::own) {
        in.positions[i] = position_at<kWidth>(at, col);
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

}  // namespace megalith::ops::cuda
