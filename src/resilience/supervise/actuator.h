#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "resilience/decide/controller.h"
#include "resilience/transport.h"

namespace megalith::resilience {

// Carries out what the controller wants: orders over the transport, rosters into the run directory. Orders are repeated
// until the node reports their result; a newer order to a node replaces the older one. Secrets pass through here alone.
class Actuator {
 public:
  using Alarm = std::function<void(const std::string&)>;
  Actuator(const RunState& state, ControlDirectory& directory, SupervisorTransport& transport, Alarm alarm);

  // What followed at once is appended to `facts`.
  void carry_out(const std::vector<Action>& actions, double now, std::vector<Fact>& facts);
  // What became of an order, and where stores and holders are.
  void take(const Report& report, double now, std::vector<Fact>& facts);
  // Once a second: greets every node that is heard, or repeats what it has had for a while and not answered.
  void repeat();
  void dismiss(const std::string& node, int64_t session, const std::string& reason);

 private:
  void give(const Action& action);
  void claim(double now, std::vector<Fact>& facts);
  Order order_of(OrderKind kind, int64_t generation);
  const std::string& roster_digest();
  std::vector<Holder> holders_for(const std::string& node) const;
  Fact fact_of(const Order& order, const Report& report, double now) const;

  const RunState& state_;
  ControlDirectory& directory_;
  SupervisorTransport& transport_;
  Alarm alarm_;
  int64_t sequence_ = 0;
  std::map<std::string, Order> open_;  // not answered, by node
  std::set<std::string> given_;        // nodes that got theirs since the last repetition
  std::map<std::string, Place> holders_;
  Place store_;
  int64_t store_generation_ = 0;
  std::string digest_;  // of the newest roster
  int64_t digest_generation_ = 0;
};

}  // namespace megalith::resilience
