#include "parallel/mesh.h"

#include <gtest/gtest.h>

#include <set>

namespace megalith::parallel {
namespace {

const Layout kLayout{.tensor = 2, .pipeline = 3, .context = 2, .data = 4};

TEST(Mesh, FollowsMegatronsOrder) {
  const Mesh mesh(kLayout);
  EXPECT_EQ(mesh.world(), 48);
  EXPECT_EQ(mesh.rank_of({.tp = 1}), 1);
  EXPECT_EQ(mesh.rank_of({.cp = 1}), 2);
  EXPECT_EQ(mesh.rank_of({.dp = 1}), 4);
  EXPECT_EQ(mesh.rank_of({.pp = 1}), 16);
  for (int rank = 0; rank < 48; ++rank) EXPECT_EQ(mesh.rank_of(mesh.coordinates_of(rank)), rank);
}

TEST(Mesh, NamesTheMembersOfAGroup) {
  const Mesh mesh(kLayout);
  EXPECT_EQ(mesh.group_of(19, {Axis::tp}), (std::vector<int>{18, 19}));
  EXPECT_EQ(mesh.group_of(19, {Axis::pp}), (std::vector<int>{3, 19, 35}));
  EXPECT_EQ(mesh.group_of(19, {Axis::cp, Axis::dp}), (std::vector<int>{17, 19, 21, 23, 25, 27, 29, 31}));
  EXPECT_EQ(mesh.group_of(19, {}), (std::vector<int>{19}));
}

TEST(Mesh, NumbersTheHoldersOfTheSameWeights) {
  const Mesh mesh(kLayout);
  for (int rank = 0; rank < 48; ++rank)
    EXPECT_EQ(mesh.group_of(rank, {Axis::cp, Axis::dp})[static_cast<size_t>(mesh.replica_of(rank))], rank);
}

// Whatever the axes, the groups of all ranks divide the world, and members agree on their group.
TEST(Mesh, GroupsDivideTheWorld) {
  const Mesh mesh(kLayout);
  for (const auto& axes : {std::initializer_list<Axis>{Axis::tp}, {Axis::dp, Axis::cp}, {Axis::pp, Axis::tp}}) {
    std::set<std::vector<int>> groups;
    for (int rank = 0; rank < 48; ++rank) groups.insert(mesh.group_of(rank, axes));
    std::set<int> members;
    size_t count = 0;
    for (const auto& group : groups) {
      members.insert(group.begin(), group.end());
      count += group.size();
    }
    EXPECT_EQ(members.size(), 48U);
    EXPECT_EQ(count, 48U);
  }
}

TEST(Mesh, TiedEmbeddingsPairTheEndsOfThePipeline) {
  const Mesh mesh(kLayout);
  EXPECT_EQ(mesh.embedding_group_of(5), (std::vector<int>{5, 37}));
  EXPECT_EQ(mesh.embedding_group_of(37), (std::vector<int>{5, 37}));
  EXPECT_EQ(mesh.embedding_group_of(20), (std::vector<int>{20}));
  EXPECT_EQ(Mesh({.tensor = 4}).embedding_group_of(2), (std::vector<int>{2}));
}

TEST(Mesh, FindsTheNeighboursThatShareAHead) {
  const Mesh mesh({.tensor = 8, .data = 2});
  EXPECT_EQ(mesh.neighbours_of(13, Axis::tp, 4), (std::vector<int>{12, 13, 14, 15}));
  EXPECT_EQ(mesh.neighbours_of(13, Axis::tp, 1), (std::vector<int>{13}));
}

TEST(Mesh, RefusesPlacesThatItHasNot) {
  const Mesh mesh(kLayout);
  EXPECT_THROW(mesh.coordinates_of(48), Error);
  EXPECT_THROW(mesh.rank_of({.tp = 2}), Error);
}

}  // namespace
}  // namespace megalith::parallel
