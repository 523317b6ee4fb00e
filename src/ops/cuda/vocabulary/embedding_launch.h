#pragma once

#include "ops/cuda/matrix.h"

namespace megalith::ops::cuda {

struct EmbeddingForwardLaunch {
  Extent extent;  // of out
  const int32_t* ids = nullptr;
  Matrix tokens_table;
  int64_t vocabulary = 0;
  Matrix positions_table = {};
  int64_t positions_limit = 0;
  RowPositions positions = {};
  Matrix out;
  int64_t first_id = 0;
  bool is_part = false;
};
void launch_embedding_forward(const EmbeddingForwardLaunch& args, void* stream);

// Places in the order of the keys. A run of rows of one key that is longer is summed in parts, one for each window.
constexpr int kScatterWindow = 32;

// gradient[key - first_key] += the rows of dout that have this key, for keys in [first_key, first_key + limit).
// keys and rows are those of a RowOrder.
// Where there is a positions_gradient, positions_gradient[r % length] += row r of dout, r ascending.
struct ScatterLaunch {
  Extent extent;  // of dout
  Matrix dout;
  const int32_t* keys = nullptr;
  const int32_t* rows = nullptr;
  int64_t first_key = 0;
  int64_t limit = 0;
  Matrix gradient;                 // f32
  Matrix positions_gradient = {};  // f32
  int64_t length = 0;              // 0 where there is none
  float* parts = nullptr;          // two rows for each window of the order
};
void launch_scatter(const ScatterLaunch& args, void* stream);

}  // namespace megalith::ops::cuda
