#include "launch/ranks/numa.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "launch/environment.h"

namespace megalith::launch {
namespace {

TEST(Numa, RanksAreDealtOutInOrder) {
  std::vector<int> nodes;
  for (int rank = 0; rank < 8; ++rank) nodes.push_back(numa_node_of(rank, 8, 2));
  EXPECT_EQ(nodes, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(numa_node_of(0, 1, 4), 0);
  EXPECT_EQ(numa_node_of(3, 4, 4), 3);
  EXPECT_EQ(numa_node_of(9, 4, 2), 1);
}

TEST(Numa, ListsOfCores) {
  EXPECT_EQ(parse_cpu_list("0-2,8\n"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
  for (const char* bad : {"x", "3-1", "-1", "1-", "0-99999"}) EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
}

TEST(Numa, NothingIsBoundUnlessAsked) {
  cpu_set_t before{}, after{};
  ::sched_getaffinity(0, sizeof before, &before);
  bind_to_numa_node({.rank = 0, .local_rank = 0, .size = 2}, lookup_in({}));
  ::sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace megalith::launch
