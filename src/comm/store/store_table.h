#pragma once

#include <map>
#include <optional>
#include <string>

#include "comm/store/packet.h"

namespace megalith::comm {

// The keys of a store and what requests do to them.
class StoreTable {
 public:
  static constexpr size_t kMaxBytes = 256 << 20;  // keys and values together

  // The answer; nothing where a `get` has to wait for its key.
  std::optional<Packet> apply(const Packet& request);

 private:
  Packet set(const std::string& key, const std::string& value);
  Packet add(const Packet& request);
  Packet compare_and_set(const Packet& request);
  Packet delete_prefix(const std::string& prefix);

  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;
};

}  // namespace megalith::comm
