#pragma once

#include "checkpoint/format/box.h"
#include "parallel/placement/placement.h"

namespace megalith::train {

// Between the boxes of `parallel`, where a vector is a matrix of one column, and those of `checkpoint`.
checkpoint::Box to_stored(const parallel::Box& box, const Shape& whole);

// A vector as a matrix of one column.
Tensor as_matrix(const Tensor& tensor);

// The rows of a rank's state of a parameter (`state`: weight, moment, ... of the rows of `held`) that hold `box`, which
// lies in one of its pieces.
Tensor rows_of_box(const parallel::ShardPiece& held, const parallel::Box& box, const Tensor& state);

}  // namespace megalith::train
