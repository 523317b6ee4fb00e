#include "ops/embedding.h"

#include <limits>

#include "ops/cuda/check.h"
#include "ops/cuda/embedding_launch.h"
#include "ops/cuda/launch.h"

namespace megalith::ops::cuda {

namespace {

static_assert(kScatterWindow == kEmbeddingWindow);

// gradient += the rows of dout by their keys. With positions: along the samples.
struct Scatter {
  Tensor keys;
  int64_t first_key = 0;
  Tensor gradient;
  Tensor positions_gradient = {};
  int64_t length = 0;
};

void scatter(Stream& stream, const EmbeddingBackward& args, const Scatter& rows) {
  const bool fits = launch_scatter({.extent = extent_of(args.dout),
                                    .dout = matrix_of(args.dout),
                                    .keys = rows.keys.as<int32_t>(),
                                    .first_key = rows.first_key,
                                    .limit = rows.gradient.rows(),
                                    .gradient = matrix_of(rows.gradient),
                                    .positions_gradient = matrix_of(rows.positions_gradient),
                                    .length = rows.length,
                                    .scratch = args.scratch.as<int32_t>(),
                                    .scratch_elements = args.scratch.elements()},
                                   stream.native());
  MEGALITH_CHECK(fits, "{} rows do not fit into {} words of scratch", rows.keys.elements(), args.scratch.elements());
}

void check_part(bool is_part, int64_t first_id) {
  MEGALITH_CHECK(is_part || first_id == 0, "a whole table from token {} on", first_id);
}

}  // namespace

void embedding_forward(Stream& stream, const EmbeddingForward& args) {
  const Tensor& table = args.tokens_table;
  const int64_t rows = args.out.rows();
  const int64_t cols = args.out.cols();
  check_matrix(args.out, "out", args.out.dtype, rows, cols);
  check_matrix(table, "tokens_table", args.out.dtype, table.rows(), cols);
  check_vector(args.ids, "ids", DType::i32, rows);
  check_part(args.is_part, args.first_id);
  EmbeddingForwardLaunch launch{.extent = extent_of(args.out),
                                .ids = args.ids.as<int32_t>(),
                                .tokens_table = matrix_of(table),
                                .vocabulary = table.rows(),
                                .out = matrix_of(args.out),
                                .first_id = args.first_id,
                                .is_part = args.is_part};
  if (args.positions_table) {
    const int64_t limit = args.positions_table.rows();
    check_matrix(args.positions_table, "positions_table", args.out.dtype, limit, cols);
    launch.positions_table = matrix_of(args.positions_table);
    launch.positions_limit = limit;
    launch.positions = positions_of(args.positions, args.position_offset, args.length, rows, limit);
  }
  launch_embedding_forward(launch, stream.native());
  check_launch("embedding_forward", args.out);
}

void embedding_backward(Stream& stream, const EmbeddingBackward& args) {
  const int64_t rows = args.dout.rows();
  const int64_t cols = args.dout.cols();
  check_matrix(args.dout, "dout", args.dout.dtype, rows, cols);
  check_matrix(args.tokens_gradient, "tokens_gradient", DType::f32, args.tokens_gradient.rows(), cols);
  check_vector(args.ids, "ids", DType::i32, rows);
  check_part(args.is_part, args.first_id);
  check_scratch(args.scratch, DType::i32, embedding_backward_scratch(Device::cuda, rows, cols));
  MEGALITH_CHECK(rows < std::numeric_limits<int32_t>::max() / 2 && cols < std::numeric_limits<int32_t>::max() / 2,
                 "dout is {}", to_string(args.dout.shape));
  Scatter tokens{.keys = args.ids, .first_key = args.first_id, .gradient = args.tokens_gradient};
  if (args.positions_gradient) {
    const int64_t limit = args.positions_gradient.rows();
    check_matrix(args.positions_gradient, "positions_gradient", DType::f32, limit, cols);
    const RowPositions positions = positions_of(args.positions, 0, args.length, rows, limit);
    if (args.positions) {
      scatter(stream, args, {.keys = args.positions, .gradient = args.positions_gradient});
    } else {
      tokens.positions_gradient = args.positions_gradient;
      tokens.length = positions.length;
    }
  }
  scatter(stream, args, tokens);
  check_launch("embedding_backward", args.dout);
}

}  // namespace megalith::ops::cuda
