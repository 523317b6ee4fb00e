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
  const RowOrder& order;
  int64_t first_key = 0;
  Tensor gradient;
  Tensor positions_gradient = {};
  int64_t length = 0;
};

void scatter(Stream& stream, const EmbeddingBackward& args, const Scatter& by) {
  check_vector(by.order.keys, "keys", DType::i32, args.dout.rows());
  check_vector(by.order.rows, "rows", DType::i32, args.dout.rows());
  launch_scatter({.extent = extent_of(args.dout),
                  .dout = matrix_of(args.dout),
                  .keys = by.order.keys.as<int32_t>(),
                  .rows = by.order.rows.as<int32_t>(),
                  .first_key = by.first_key,
                  .limit = by.gradient.rows(),
                  .gradient = matrix_of(by.gradient),
                  .positions_gradient = matrix_of(by.positions_gradient),
                  .length = by.length,
                  .parts = args.scratch.as<float>()},
                 stream.native());
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
  check_scratch(args.scratch, DType::f32, embedding_backward_scratch(Device::cuda, rows, cols));
  MEGALITH_CHECK(rows < std::numeric_limits<int32_t>::max() / 2 && cols < std::numeric_limits<int32_t>::max() / 2,
                 "dout is {}", to_string(args.dout.shape));
  Scatter tokens{.order = args.order, .first_key = args.first_id, .gradient = args.tokens_gradient};
  if (args.positions_gradient) {
    const int64_t limit = args.positions_gradient.rows();
    check_matrix(args.positions_gradient, "positions_gradient", DType::f32, limit, cols);
    const RowPositions positions = positions_of(args.positions, 0, args.length, rows, limit);
    if (args.positions) {
      scatter(stream, args, {.order = args.positions_order, .gradient = args.positions_gradient});
    } else {
      tokens.positions_gradient = args.positions_gradient;
      tokens.length = positions.length;
    }
  }
  scatter(stream, args, tokens);
  check_launch("embedding_backward", args.dout);
}

}  // namespace megalith::ops::cuda
