#include "train/state/state_boxes.h"

#include "core/error.h"

namespace megalith::train {

checkpoint::Box to_stored(const parallel::Box& box, const Shape& whole) {
  if (whole.rank() == 1) return {.offset = {box.rows.begin}, .extent = {box.rows.size()}};
  return {.offset = {box.rows.begin, box.columns.begin}, .extent = {box.rows.size(), box.columns.size()}};
}

Tensor as_matrix(const Tensor& tensor) {
  return tensor.view({tensor.shape[0], tensor.shape.rank() == 1 ? 1 : tensor.shape[1]});
}

Tensor rows_of_box(const parallel::ShardPiece& held, const parallel::Box& box, const Tensor& state) {
  for (const parallel::Piece& piece : held.pieces) {
    if (piece.box.columns != box.columns || intersection(piece.box.rows, box.rows) != box.rows) continue;
    const int64_t first = piece.local_row + box.rows.begin - piece.box.rows.begin - held.local_rows.begin;
    return as_matrix(state).slice_rows(first, first + box.rows.size());
  }
  fail(ErrorKind::internal, "this rank does not hold rows {} to {} of a parameter that it owns", box.rows.begin,
       box.rows.end);
}

}  // namespace megalith::train
