#include "launch/ranks/numa.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "config/environment/variables.h"
#include "config/scalar.h"

namespace megalith::launch {

namespace {

constexpr int kMostCpus = 4096;
constexpr int kMostRanks = 1 << 20;

std::vector<int> read_list(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return parse_cpu_list(text);
}

// Of this machine, as its launcher says.
int local_size(const config::Variables& variables) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "NPROC"}) {
    if (const auto size = variables.number(name, 1, kMostRanks)) return static_cast<int>(*size);
  }
  return 1;
}

// Only those that this process may use already: a cgroup may have given it fewer.
bool bind_cores(const std::vector<int>& cores) {
  cpu_set_t allowed{}, wanted{};
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  for (const int core : cores) {
    if (core < CPU_SETSIZE && CPU_ISSET(core, &allowed)) CPU_SET(core, &wanted);
  }
  return CPU_COUNT(&wanted) > 0 && ::sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

void bind_memory(int node) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  if (node >= kBits) return;
  const unsigned long mask = 1UL << node;
  ::syscall(SYS_set_mempolicy, MPOL_BIND, &mask, kBits + 1);
}

}  // namespace

int numa_node_of(int local_rank, int local_size, int nodes) {
  const int rank = std::min(local_rank, local_size - 1);
  return static_cast<int>(int64_t{rank} * nodes / local_size);
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  text = config::trimmed(text);
  while (!text.empty()) {
    const std::string_view range = text.substr(0, text.find(','));
    const size_t dash = range.find('-');
    const auto first = config::read_int(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : config::read_int(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    text.remove_prefix(std::min(text.size(), range.size() + 1));
  }
  return cpus;
}

void bind_to_numa_node(const config::RankEnvironment& place, const config::Lookup& environment) {
  const config::Variables variables(environment);
  if (variables.text("MEGALITH_NUMA") != "1") return;
  const std::vector<int> nodes = read_list("/sys/devices/system/node/online");
  if (nodes.size() < 2) return;
  const int index = numa_node_of(place.local_rank, local_size(variables), static_cast<int>(nodes.size()));
  const int node = nodes[static_cast<size_t>(index)];
  if (bind_cores(read_list(fmt::format("/sys/devices/system/node/node{}/cpulist", node)))) bind_memory(node);
}

}  // namespace megalith::launch
