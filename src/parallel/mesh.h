#pragma once

#include <array>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "parallel/layout.h"

namespace megalith::parallel {

constexpr std::array<Axis, 4> kAxes = {Axis::tp, Axis::cp, Axis::dp, Axis::pp};

std::string_view name_of(Axis axis);

// Where a rank stands on each axis.
struct Coordinates {
  int64_t tp = 0;
  int64_t cp = 0;
  int64_t dp = 0;
  int64_t pp = 0;

  int64_t& operator[](Axis axis);
  int64_t operator[](Axis axis) const;
  bool operator==(const Coordinates&) const = default;
};

// The ranks of a run as a grid in Megatron's order: tp varies fastest, then cp, dp, pp. Groups are lists of global
// ranks in rising order, so that every member makes the same list.
class Mesh {
 public:
  explicit Mesh(const Layout& layout);

  int64_t world() const;
  int64_t size(Axis axis) const { return sizes_[axis]; }
  Coordinates coordinates_of(int rank) const;
  int rank_of(const Coordinates& coordinates) const;

  // The place of a rank among those that hold the same weights, its group along {cp, dp}.
  int64_t replica_of(int rank) const;

  // The ranks that differ from `rank` along these axes alone: {tp}, {cp, dp} for gradients, {tp, pp} for one model.
  std::vector<int> group_of(int rank, std::initializer_list<Axis> axes) const;
  // The block of `count` neighbours along one axis in which `rank` stands: the replicas of a piece (cuts.h).
  std::vector<int> neighbours_of(int rank, Axis axis, int64_t count) const;
  // The rank's counterparts on the first and the last stage, which share tied embeddings; `rank` alone where it is
  // on neither, or where there is one stage.
  std::vector<int> embedding_group_of(int rank) const;

 private:
  Coordinates sizes_;
};

}  // namespace megalith::parallel
