#include "ops/vocabulary/embedding.h"

#include <optional>

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

// Which row of a table, or of the part of one, each row looks up.
class TableRows {
 public:
  template <class Args>
  TableRows(const Args& args, int64_t rows, int64_t vocabulary)
      : ids_(args.ids.template as<int32_t>()), first_id_(args.first_id), vocabulary_(vocabulary) {
    for (int64_t row = 0; row < rows; ++row) {
      MEGALITH_CHECK(args.is_part || holds(row), "token {} in row {} of a vocabulary of {}", ids_[row], row,
                     vocabulary);
    }
  }

  bool holds(int64_t row) const { return 0 <= of(row) && of(row) < vocabulary_; }
  int64_t of(int64_t row) const { return ids_[row] - first_id_; }

 private:
  const int32_t* ids_;
  int64_t first_id_;
  int64_t vocabulary_;
};

template <class T>
void embed(const T* token, const T* position, T* out, int64_t count) {
  if (token != nullptr && position != nullptr) {
    add_rows(token, position, out, count);
  } else if (token != nullptr || position != nullptr) {
    std::copy_n(token != nullptr ? token : position, count, out);
  } else {
    std::fill_n(out, count, T(0.0F));
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
  const TableRows tokens(args, rows, table.rows());
  std::optional<Positions> positions;
  if (args.positions_table) {
    positions.emplace(args.positions, args.position_offset, args.length, rows, args.positions_table.rows());
  }
  dispatch_float(args.out.dtype, [&]<class T>(std::type_identity<T>) {
    run_pieces(stream, rows, tile_rows(cols), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* token = tokens.holds(row) ? table.row<T>(tokens.of(row)) : nullptr;
        const T* position = positions ? args.positions_table.row<T>(positions->of(row)) : nullptr;
        embed(token, position, args.out.row<T>(row), cols);
      }
    });
  });
}

void embedding_backward(Stream& stream, const EmbeddingBackward& args) {
  const int64_t rows = args.dout.rows();
  const int64_t cols = args.dout.cols();
  const TableRows tokens(args, rows, args.tokens_gradient.rows());
  std::optional<Positions> positions;
  if (args.positions_gradient) {
    positions.emplace(args.positions, 0, args.length, rows, args.positions_gradient.rows());
  }
  dispatch_float(args.dout.dtype, [&]<class T>(std::type_identity<T>) {
    using M = Main<T>;
    run_pieces(stream, cols, kColumns, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows; ++row) {
        const T* dout = args.dout.row<T>(row) + begin;
        if (tokens.holds(row)) {
          accumulate(dout, args.tokens_gradient.row<M>(tokens.of(row)) + begin, end - begin);
        }
        if (positions) {
          accumulate(dout, args.positions_gradient.row<M>(positions->of(row)) + begin, end - begin);
        }
      }
    });
  });
}

}  // namespace megalith::ops::cpu
