#pragma once

#include <string_view>
#include <vector>

#include "config/environment/environment.h"

namespace megalith::launch {

// Where MEGALITH_NUMA is 1: binds this process, and what it starts from here on, to the cores and the memory of one
// NUMA node. The ranks of a machine are dealt out in order, as GPUs are to sockets. Nothing happens on a machine with
// one node, or where its nodes cannot be read.
void bind_to_numa_node(const config::RankEnvironment& place, const config::Lookup& environment);

// 0 to nodes - 1, for one of the ranks of a machine.
int numa_node_of(int local_rank, int local_size, int nodes);
// "0-2,8" is 0, 1, 2, 8; empty for what is no such list.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace megalith::launch
