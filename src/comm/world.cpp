#include "comm/world.h"

#include <fmt/ranges.h>

#include <numeric>

namespace megalith::comm {

std::unique_ptr<Communicator> World::make_group(const std::string& name, std::vector<int> ranks) {
  Group group = comm::make_group(name, std::move(ranks), rank_, places_);
  const std::string members = fmt::format("{}/{}", name, fmt::join(group.ranks, ","));
  const std::string key = fmt::format("{}/{}", members, made_[members]++);
  std::unique_ptr<Communicator> made = connect(std::move(group), key);
  made->set_deadline(deadline_);
  return made;
}

std::unique_ptr<Communicator> World::make_world_group() {
  std::vector<int> ranks(static_cast<size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_group("world", std::move(ranks));
}

}  // namespace megalith::comm
