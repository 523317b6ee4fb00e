#include "ops/vocabulary/embedding.h"

#include <limits>

#include "ops/cuda/launch.h"
#include "ops/cuda/launch_args.h"
#include "ops/cuda/vocabulary/embedding_launch.h"

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

}  // namespace

void embedding_forward(Stream& stream, const EmbeddingForward& args) {
  EmbeddingForwardLaunch launch{.extent = extent_of(args.out),
                                .ids = args.ids.as<int32_t>(),
                                .tokens_table = matrix_of(args.tokens_table),
                                .vocabulary = args.tokens_table.rows(),
                                .out = matrix_of(args.out),
                                .first_id = args.first_id,
                                .is_part = args.is_part};
  if (args.positions_table) {
    launch.positions_table = matrix_of(args.positions_table);
    launch.positions_limit = args.positions_table.rows();
    launch.positions = positions_of(args.positions, args.position_offset, args.length);
  }
  launch_embedding_forward(launch, stream.native());
  check_launch("embedding_forward", args.out);
}

void embedding_backward(Stream& stream, const EmbeddingBackward& args) {
  const int64_t rows = args.dout.rows();
  const int64_t cols = args.dout.cols();
  MEGALITH_CHECK(rows < std::numeric_limits<int32_t>::max() / 2 && cols < std::numeric_limits<int32_t>::max() / 2,
                 "dout is {}", to_string(args.dout.shape));
  Scatter tokens{.order = args.order, .first_key = args.first_id, .gradient = args.tokens_gradient};
  if (args.positions_gradient) {
    if (args.positions) {
      scatter(stream, args, {.order = args.positions_order, .gradient = args.positions_gradient});
    } else {
      tokens.positions_gradient = args.positions_gradient;
      tokens.length = args.length;
    }
  }
  scatter(stream, args, tokens);
  check_launch("embedding_backward", args.dout);
}

}  // namespace megalith::ops::cuda
