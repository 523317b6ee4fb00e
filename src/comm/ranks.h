#pragma once

#include <memory>
#include <string>
#include <vector>

namespace megalith::comm {

// Where a rank runs: for errors to say it, and for others to reach it.
struct RankPlace {
  std::string host;
  std::string device;  // "cpu", "cuda:3"
  int64_t process = 0;
  std::string address = "127.0.0.1";

  bool operator==(const RankPlace&) const = default;
};

// This machine's name and this process; the others as given.
RankPlace place_here(std::string device, std::string address);

// The places of all ranks, by global rank.
using RankPlaces = std::vector<RankPlace>;

// On how many machines the ranks are.
int machines_of(const RankPlaces& places);

// Some ranks of a run, under a name for people ("tp", "dp").
struct Group {
  std::string name;
  std::vector<int> ranks;  // global, in the order of the members
  int member = 0;          // which of them this rank is
  std::shared_ptr<const RankPlaces> places;

  // "rank 3 (node7, process 4711, cuda:3)", by member.
  std::string describe(int who) const;
  // The same for several, joined by commas.
  std::string describe(const std::vector<int>& members) const;
};

// User error when the ranks repeat, lie outside of the run or leave out `rank`.
Group make_group(std::string name, std::vector<int> ranks, int rank, std::shared_ptr<const RankPlaces> places);

}  // namespace megalith::comm
