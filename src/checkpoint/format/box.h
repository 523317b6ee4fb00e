#pragma once

#include <optional>
#include <vector>

#include "core/tensor.h"

namespace megalith::checkpoint {

// A part of a tensor.
struct Box {
  Shape offset;
  Shape extent;

  bool operator==(const Box&) const = default;
};

Box whole_box(const Shape& shape);
bool lies_in(const Box& box, const Shape& shape);
// What two boxes of one tensor have in common; nothing where that is empty.
std::optional<Box> intersection(const Box& a, const Box& b);
// No element lies in two. Boxes of more than two dimensions may be cut along the first two only.
bool are_disjoint(const std::vector<Box>& boxes);

}  // namespace megalith::checkpoint
