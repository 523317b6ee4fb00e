#include "ops/embedding.h"

#include <optional>

#include "ops/cpu/check.h"
#include "ops/cpu/math.h"
#include "ops/cpu/positions.h"
#include "ops/cpu/tiles.h"

namespace megalith::ops::cpu {

namespace {

template <class T>
void add_rows(const T* a, const T* b, T* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    out[i] = round_to<T>(static_cast<Main<T>>(a[i]) + static_cast<Main<T>>(b[i]));
  }
}

template <class T>
void accumulate(const T* source, Main<T>* sum, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<Main<T>>(source[i]);
}

void check_ids(const Tensor& ids, int64_t rows, int64_t vocabulary) {
  check_vector(ids, "ids", DType::i32, rows);
  const int32_t* id = ids.as<int32_t>();
  for (int64_t row = 0; row < rows; ++row) {
    MEGALITH_CHECK(0 <= id[row] && id[row] < vocabulary, "token {} in row {} of a vocabulary of {}", id[row], row,
                   vocabulary);
  }
}

// Columns that one tile of the backward pass owns: all rows that touch them pass through it in order, so that tables
// need neither locks nor a sort.
constexpr int64_t kColumns = 64;

}  // namespace

void embedding_forward(Stream& stream, const EmbeddingForward& args) {
  const Tensor& table = args.tokens_table;
  const int64_t rows = args.out.rows();
  const int64_t cols = args.out.cols();
  check_matrix(table, "tokens_table", args.out.dtype, table.rows(), cols);
  check_ids(args.ids, rows, table.rows());
  std::optional<Positions> positions;
  if (args.positions_table) {
    const int64_t limit = args.positions_table.rows();
    check_matrix(args.positions_table, "positions_table", args.out.dtype, limit, cols);
    positions.emplace(args.positions, args.position_offset, args.length, rows, limit);
  }
  const int32_t* ids = args.ids.as<int32_t>();
  dispatch_float(args.out.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, rows, tile_rows(cols), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* token = table.row<T>(ids[row]);
        T* out = args.out.row<T>(row);
        if (positions) {
          add_rows(token, args.positions_table.row<T>(positions->of(row)), out, cols);
        } else {
          std::copy(token, token + cols, out);
        }
      }
    });
  });
}

void embedding_backward(Stream& stream, const EmbeddingBackward& args) {
  const int64_t rows = args.dout.rows();
  const int64_t cols = args.dout.cols();
  const DType main = main_dtype(args.dout.dtype);
  check_matrix(args.tokens_gradient, "tokens_gradient", main, args.tokens_gradient.rows(), cols);
  check_ids(args.ids, rows, args.tokens_gradient.rows());
  std::optional<Positions> positions;
  if (args.positions_gradient) {
    const int64_t limit = args.positions_gradient.rows();
    check_matrix(args.positions_gradient, "positions_gradient", main, limit, cols);
    positions.emplace(args.positions, 0, args.length, rows, limit);
  }
  const int32_t* ids = args.ids.as<int32_t>();
  dispatch_float(args.dout.dtype, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    run_pieces(stream, cols, kColumns, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows; ++row) {
        const T* dout = args.dout.row<T>(row) + begin;
        accumulate(dout, args.tokens_gradient.row<M>(ids[row]) + begin, end - begin);
        if (positions) {
          accumulate(dout, args.positions_gradient.row<M>(positions->of(row)) + begin, end - begin);
        }
      }
    });
  });
}

}  // namespace megalith::ops::cpu
