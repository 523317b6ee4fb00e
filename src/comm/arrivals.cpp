#include "comm/arrivals.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

Arrivals::Arrivals(StoreClient& store, std::string key, int member, int members)
    : store_(store), key_(std::move(key)), member_(member), members_(members) {}

void Arrivals::announce(int64_t sequence) {
  try {
    store_.set(key_of(member_), std::to_string(sequence));
  } catch (const Error&) {
  }
}

std::vector<int> Arrivals::absent(int64_t sequence, double seconds) {
  const double until = monotonic_seconds() + seconds;
  std::vector<int> members;
  for (int member = 0; member < members_; ++member) {
    if (member != member_ && !arrived(member, sequence, until)) members.push_back(member);
  }
  return members;
}

std::string Arrivals::key_of(int member) const {
  return fmt::format("arrived/{}/{}", key_, member);
}

bool Arrivals::arrived(int member, int64_t sequence, double until) {
  while (true) {
    try {
      const std::string text = store_.get(key_of(member), std::max(0.0, until - monotonic_seconds()));
      if (std::strtoll(text.c_str(), nullptr, 10) >= sequence) return true;
    } catch (const Error&) {
      return false;
    }
    if (monotonic_seconds() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace megalith::comm
