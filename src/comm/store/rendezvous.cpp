#include "comm/store/rendezvous.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "comm/store/socket.h"
#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

namespace {
std::string place_key(int rank) {
  return fmt::format("rank/{}/place", rank);
}

// One place a line: process, device, address, host.
std::string write_place(const RankPlace& place) {
  return fmt::format("{} {} {} {}\n", place.process, place.device, place.address, place.host);
}

RankPlace read_place(const std::string& line) {
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first + 1);
  const size_t third = line.find(' ', second + 1);
  RankPlace place;
  const auto status = std::from_chars(line.data(), line.data() + line.size(), place.process);
  if (status.ec != std::errc{} || first == std::string::npos || second == std::string::npos ||
      third == std::string::npos) {
    fail(ErrorKind::comm, "the store says '{}' where the place of a rank should be", line);
  }
  place.device = line.substr(first + 1, second - first - 1);
  place.address = line.substr(second + 1, third - second - 1);
  place.host = line.substr(third + 1);
  return place;
}

RankPlaces read_places(const std::string& text) {
  RankPlaces places;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    places.push_back(read_place(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return places;
}

// Who came over loopback is on this machine, that of the store. Where others are not, they need another address of it.
void make_reachable(RankPlaces& places) {
  const auto other =
      std::find_if(places.begin(), places.end(), [](const RankPlace& place) { return !is_loopback(place.address); });
  if (other == places.end()) return;
  const std::string outward = address_towards(other->address);
  for (RankPlace& place : places) {
    if (is_loopback(place.address)) place.address = outward;
  }
}

const std::string kMissing = "missing ";

// By rank 0 alone: were every rank to ask for every other, a large run would ask millions of times.
std::string collect_places(StoreClient& store, int size, double seconds) {
  const double until = monotonic_seconds() + seconds;
  RankPlaces places;
  std::vector<int> missing;
  for (int rank = 0; rank < size; ++rank) {
    try {
      places.push_back(read_places(store.get(place_key(rank), std::max(0.0, until - monotonic_seconds()))).at(0));
    } catch (const Error&) {
      missing.push_back(rank);
    }
  }
  if (!missing.empty()) return kMissing + ranks_in_words(missing);
  make_reachable(places);
  std::string all;
  for (const RankPlace& place : places) all += write_place(place);
  return all;
}
}  // namespace

RankPlaces exchange_places(StoreClient& store, int rank, int size, const RankPlace& own, double seconds) {
  store.set(place_key(rank), write_place(own));
  if (rank == 0) store.set("places", collect_places(store, size, seconds));
  constexpr double kVerdictSeconds = 5.0;  // rank 0 waits as long as we do, then says who is missing
  const std::string found = store.get("places", seconds + kVerdictSeconds);
  if (found.starts_with(kMissing)) {
    const std::string missing = found.substr(kMissing.size());
    throw Error(ErrorKind::comm,
                fmt::format("these of {} ranks did not appear within {:.1f} s: {}", size, seconds, missing),
                {.ranks = ranks_in(missing)});
  }
  RankPlaces places = read_places(found);
  if (static_cast<int>(places.size()) != size) {
    user_error("rank {} was told of {} ranks, rank 0 of {}", rank, size, places.size());
  }
  return places;
}

std::string ranks_in_words(const std::vector<int>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ", "));
}

std::vector<int> ranks_in(const std::string& words) {
  std::vector<int> ranks;
  std::istringstream text(words);
  for (std::string rank; std::getline(text, rank, ',');) ranks.push_back(std::stoi(rank));
  return ranks;
}

std::string last_word_key(int rank) {
  return fmt::format("rank/{}/last word", rank);
}

uint32_t number_of_group(StoreClient& store, const std::string& key, double seconds) {
  const std::string number_key = "group/" + key;
  const bool first = store.add(number_key + "/members", 1) == 1;
  if (first) store.set(number_key, std::to_string(store.add("groups", 1)));
  const std::string text = store.get(number_key, seconds);
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace megalith::comm
