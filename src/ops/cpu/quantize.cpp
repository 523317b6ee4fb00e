#include "ops/operands/quantize.h"

#include "ops/cpu/fp8.h"

namespace megalith::ops::cpu {

void quantize(Stream& stream, const Quantize& args) {
  const int64_t cols = args.x.cols();
  dispatch_float(args.x.dtype, [&]<class T>(std::type_identity<T>) {
    write_fp8<T>(stream, args.y, args.x.rows(), cols, [&](int64_t row, Main<T>* values) {
      const T* x = args.x.row<T>(row);
#pragma omp simd
      for (int64_t i = 0; i < cols; ++i) values[i] = static_cast<Main<T>>(x[i]);
    });
  });
  if (args.dbias) cpu::bias_gradient(stream, {.dy = args.x, .dbias = args.dbias, .scratch = args.scratch});
}

void transpose(Stream& stream, const Transpose& args) {
  const int64_t rows = args.rows.rows();
  dispatch_fp8(args.rows.dtype, [&]<class F>(std::type_identity<F>) {
    run_pieces(stream, args.rows.cols(), tile_rows(rows), [&](int64_t begin, int64_t end) {
      for (int64_t col = begin; col < end; ++col) {
        F* column = args.columns.row<F>(col);
        for (int64_t row = 0; row < rows; ++row) column[row] = args.rows.row<F>(row)[col];
      }
    });
  });
}

}  // namespace megalith::ops::cpu
