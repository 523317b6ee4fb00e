#include "comm/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/process/host.h"

namespace megalith::comm {

RankPlace place_here(std::string device, std::string address) {
  return {.host = host_name(), .device = std::move(device), .process = ::getpid(), .address = std::move(address)};
}

int machines_of(const RankPlaces& places) {
  std::set<std::string> hosts;
  for (const RankPlace& place : places) hosts.insert(place.host);
  return static_cast<int>(hosts.size());
}

std::string Group::describe(int who) const {
  const int rank = ranks[static_cast<size_t>(who)];
  const RankPlace& place = (*places)[static_cast<size_t>(rank)];
  return fmt::format("rank {} ({}, process {}, {})", rank, place.host, place.process, place.device);
}

std::string Group::describe(const std::vector<int>& members) const {
  std::string text;
  for (const int who : members) text += (text.empty() ? "" : ", ") + describe(who);
  return text;
}

Group make_group(std::string name, std::vector<int> ranks, int rank, std::shared_ptr<const RankPlaces> places) {
  const auto world = static_cast<int>(places->size());
  for (const int member : ranks) {
    if (member < 0 || member >= world) {
      user_error("group '{}' holds rank {}, but the run has {} ranks", name, member, world);
    }
  }
  if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) {
    user_error("group '{}' holds a rank twice", name);
  }
  const auto own = std::find(ranks.begin(), ranks.end(), rank);
  if (own == ranks.end()) user_error("rank {} is not a member of group '{}' that it wants to join", rank, name);
  const auto member = static_cast<int>(own - ranks.begin());
  return {.name = std::move(name), .ranks = std::move(ranks), .member = member, .places = std::move(places)};
}

}  // namespace megalith::comm
