#pragma once

#include <string>
#include <vector>

#include "comm/store/store.h"

namespace megalith::comm {

// Which members of a group have come to a collective, kept in the store: for backends that cannot see it themselves.
// Only calls that take long are announced, so that the others cost nothing.
class Arrivals {
 public:
  // `key` names the group within the run. The store must outlive it.
  Arrivals(StoreClient& store, std::string key, int member, int members);

  // This member has come to collective `sequence`. The store being gone is no error here.
  void announce(int64_t sequence);
  // Members that have not announced it, or a later one, `seconds` from now; all others when the store is gone.
  std::vector<int> absent(int64_t sequence, double seconds);

 private:
  std::string key_of(int member) const;
  bool arrived(int member, int64_t sequence, double until);

  StoreClient& store_;
  std::string key_;
  int member_;
  int members_;
};

}  // namespace megalith::comm
