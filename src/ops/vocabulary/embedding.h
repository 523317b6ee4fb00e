#pragma once

#include "ops/vocabulary/row_order.h"

namespace megalith::ops {

// out[r] = tokens_table[ids[r]] (+ positions_table[position_offset + r % length], or positions_table[positions[r]]).
//   ids (N) i32; tokens_table (V,C); positions_table (P,C), optional; out (N,C). An id outside [0,V) is an internal
//   error: the data room has refused it before. Where the table is_part of one that ranks divide, it holds the ids
//   [first_id, first_id + V), and any other id counts as a row of zeros.
struct EmbeddingForward {
  Tensor ids;
  Tensor tokens_table;
  Tensor positions_table = {};
  Tensor positions = {};  // (N) i32
  Tensor out;
  int64_t length = 0;
  int64_t position_offset = 0;
  bool is_part = false;
  int64_t first_id = 0;
};
MEGALITH_OP(embedding_forward, EmbeddingForward)

// Adds the rows of dout into the tables' gradients, each row's contributions in a fixed order: deterministic. Of a part
// of the table, rows with other ids add nothing to it.
struct EmbeddingBackward {
  Tensor dout;
  Tensor ids;
  Tensor tokens_gradient;          // (V,C) main dtype
  Tensor positions_gradient = {};  // (P,C) main dtype
  Tensor positions = {};           // (N) i32
  RowOrder order = {};             // of the ids: for a GPU; the CPU needs none
  RowOrder positions_order = {};   // the same, where there are positions
  int64_t length = 0;
  bool is_part = false;
  int64_t first_id = 0;
  Tensor scratch = {};  // f32, embedding_backward_scratch(N, C) elements
};
MEGALITH_OP(embedding_backward, EmbeddingBackward)

// A GPU adds up rows in parts: two for each window of their order. The CPU needs none.
constexpr int64_t kEmbeddingWindow = 32;
constexpr int64_t embedding_backward_scratch(Device device, int64_t rows, int64_t cols) {
  const int64_t windows = (rows + kEmbeddingWindow - 1) / kEmbeddingWindow;
  return device == Device::cpu ? 0 : 2 * windows * cols;
}

}  // namespace megalith::ops
