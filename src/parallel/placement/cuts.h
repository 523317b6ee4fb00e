#pragma once

#include <vector>

#include "parallel/placement/interval.h"
#include "parallel/placement/parameter_table.h"

namespace megalith::parallel {

// Part of a logical parameter, in the coordinates of the whole. A vector is a matrix of one column.
struct Box {
  Interval rows;
  Interval columns = {0, 1};

  int64_t elements() const { return rows.size() * columns.size(); }
  bool operator==(const Box&) const = default;
};

// A box as a tensor-parallel rank holds it. Its replicas are neighbours on the tensor axis: every rank for a parameter
// that is not cut, and those whose queries read the same key and value heads where there are more ranks than such
// heads.
struct Piece {
  Box box;
  int64_t local_row = 0;  // where it begins in the rank's own tensor
  int64_t replicas = 1;   // ranks that hold it
  int64_t replica = 0;    // which of them this is
  // Each replica sees only a part of what the box does (some of the tokens, some of the heads): its gradient is the sum
  // of the replicas' gradients. Otherwise they are equal.
  bool gradient_is_partial = false;

  // Checkpoints and the gradient norm take it from here.
  bool is_owner() const { return replica == 0; }
  Interval local_rows() const { return {local_row, local_row + box.rows.size()}; }
};

struct TensorShare {
  int64_t ranks = 1;
  int64_t rank = 0;
  bool sequence_parallel = false;
};

// What a rank holds of a parameter, in the order of its own tensor: one piece, or one for each fused block.
std::vector<Piece> pieces_of(const ParameterSpec& spec, const TensorShare& share);

// The parts of `pieces` that lie in some rows of the rank's own tensor.
std::vector<Piece> pieces_in_rows(const std::vector<Piece>& pieces, const Interval& local_rows);

}  // namespace megalith::parallel
