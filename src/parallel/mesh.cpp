#include "parallel/mesh.h"

#include <algorithm>

namespace megalith::parallel {

std::string_view name_of(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return "tp";
    case Axis::cp:
      return "cp";
    case Axis::dp:
      return "dp";
    case Axis::pp:
      return "pp";
  }
  return "?";
}

int64_t& Coordinates::operator[](Axis axis) {
  switch (axis) {
    case Axis::tp:
      return tp;
    case Axis::cp:
      return cp;
    case Axis::dp:
      return dp;
    default:
      return pp;
  }
}

int64_t Coordinates::operator[](Axis axis) const {
  Coordinates copy = *this;
  return copy[axis];
}

Mesh::Mesh(const Layout& layout)
    : sizes_{.tp = layout.tensor, .cp = layout.context, .dp = layout.data, .pp = layout.pipeline} {}

int64_t Mesh::world() const {
  return sizes_.tp * sizes_.cp * sizes_.dp * sizes_.pp;
}

Coordinates Mesh::coordinates_of(int rank) const {
  MEGALITH_CHECK(rank >= 0 && rank < world(), "a mesh of {} ranks has no rank {}", world(), rank);
  Coordinates coordinates;
  int64_t rest = rank;
  for (const Axis axis : kAxes) {
    coordinates[axis] = rest % sizes_[axis];
    rest /= sizes_[axis];
  }
  return coordinates;
}

int Mesh::rank_of(const Coordinates& coordinates) const {
  int64_t rank = 0;
  int64_t stride = 1;
  for (const Axis axis : kAxes) {
    MEGALITH_CHECK(coordinates[axis] >= 0 && coordinates[axis] < sizes_[axis], "axis {} of size {} has no place {}",
                   name_of(axis), sizes_[axis], coordinates[axis]);
    rank += coordinates[axis] * stride;
    stride *= sizes_[axis];
  }
  return static_cast<int>(rank);
}

int64_t Mesh::replica_of(int rank) const {
  const Coordinates place = coordinates_of(rank);
  return place.dp * sizes_.cp + place.cp;
}

std::vector<int> Mesh::group_of(int rank, std::initializer_list<Axis> axes) const {
  std::vector<Coordinates> members = {coordinates_of(rank)};
  for (const Axis axis : axes) {
    std::vector<Coordinates> wider;
    for (Coordinates member : members) {
      for (member[axis] = 0; member[axis] < sizes_[axis]; ++member[axis]) wider.push_back(member);
    }
    members = std::move(wider);
  }
  std::vector<int> ranks(members.size());
  std::transform(members.begin(), members.end(), ranks.begin(), [&](const Coordinates& m) { return rank_of(m); });
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> Mesh::neighbours_of(int rank, Axis axis, int64_t count) const {
  const int64_t block = coordinates_of(rank)[axis] / count;
  const std::vector<int> all = group_of(rank, {axis});
  MEGALITH_CHECK((block + 1) * count <= size(axis), "axis {} of size {} has no blocks of {}", name_of(axis), size(axis),
                 count);
  return {all.begin() + block * count, all.begin() + (block + 1) * count};
}

std::vector<int> Mesh::embedding_group_of(int rank) const {
  std::vector<int> stages = group_of(rank, {Axis::pp});
  if (rank != stages.front() && rank != stages.back()) return {rank};
  if (stages.size() > 2) stages = {stages.front(), stages.back()};
  return stages;
}

}  // namespace megalith::parallel
