#include "checkpoint/format/box.h"

#include <algorithm>
#include <map>

namespace megalith::checkpoint {

namespace {

struct Rectangle {
  int64_t top, bottom, left, right;
};

Rectangle rectangle_of(const Box& box) {
  const bool has_columns = box.offset.rank() > 1;
  return {.top = box.offset[0],
          .bottom = box.offset[0] + box.extent[0],
          .left = has_columns ? box.offset[1] : 0,
          .right = has_columns ? box.offset[1] + box.extent[1] : 1};
}

// The columns that a sweep over the rows is inside of: right ends by left ends.
class OpenColumns {
 public:
  // False where some are taken already.
  bool take(int64_t left, int64_t right) {
    const auto next = columns_.lower_bound(left);
    if (next != columns_.end() && next->first < right) return false;
    if (next != columns_.begin() && std::prev(next)->second > left) return false;
    columns_.emplace_hint(next, left, right);
    return true;
  }
  void release(int64_t left) { columns_.erase(left); }

 private:
  std::map<int64_t, int64_t> columns_;
};

Shape shape_like(const Shape& like, const int64_t (&dims)[Shape::kMaxRank]) {
  switch (like.rank()) {
    case 1:
      return {dims[0]};
    case 2:
      return {dims[0], dims[1]};
    case 3:
      return {dims[0], dims[1], dims[2]};
    default:
      return {dims[0], dims[1], dims[2], dims[3]};
  }
}

}  // namespace

Box whole_box(const Shape& shape) {
  return {.offset = shape_like(shape, {0, 0, 0, 0}), .extent = shape};
}

bool lies_in(const Box& box, const Shape& shape) {
  if (shape.rank() == 0 || box.offset.rank() != shape.rank() || box.extent.rank() != shape.rank()) return false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (box.offset[i] < 0 || box.extent[i] < 1 || box.extent[i] > shape[i] || box.offset[i] > shape[i] - box.extent[i])
      return false;
    if (i >= 2 && box.extent[i] != shape[i]) return false;
  }
  return true;
}

std::optional<Box> intersection(const Box& a, const Box& b) {
  int64_t offset[Shape::kMaxRank] = {};
  int64_t extent[Shape::kMaxRank] = {};
  for (int i = 0; i < a.offset.rank(); ++i) {
    offset[i] = std::max(a.offset[i], b.offset[i]);
    extent[i] = std::min(a.offset[i] + a.extent[i], b.offset[i] + b.extent[i]) - offset[i];
    if (extent[i] <= 0) return std::nullopt;
  }
  return Box{.offset = shape_like(a.offset, offset), .extent = shape_like(a.offset, extent)};
}

bool are_disjoint(const std::vector<Box>& boxes) {
  struct Edge {
    int64_t row;
    bool begins;
    Rectangle rectangle;
  };
  std::vector<Edge> edges;
  for (const Box& box : boxes) {
    const Rectangle rectangle = rectangle_of(box);
    edges.push_back({rectangle.top, true, rectangle});
    edges.push_back({rectangle.bottom, false, rectangle});
  }
  // Where one ends in the row in which another begins, the end comes first.
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.row != b.row ? a.row < b.row : a.begins < b.begins; });
  OpenColumns open;
  for (const Edge& edge : edges) {
    if (!edge.begins) {
      open.release(edge.rectangle.left);
    } else if (!open.take(edge.rectangle.left, edge.rectangle.right)) {
      return false;
    }
  }
  return true;
}

}  // namespace megalith::checkpoint
