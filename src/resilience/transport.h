#pragma once

#include <optional>
#include <string>

#include "resilience/messages.h"

namespace megalith::resilience {

// What the two sides see of the wire. Messages may be lost, doubled, late and out of order; none comes in half or
// changed. Nothing here waits, and no time of the wire's own has a meaning: who is silent is judged by our own messages
// and clock.

// A supervisor's side: every node has at most one session, opened by its monitor.
class SupervisorTransport {
 public:
  virtual ~SupervisorTransport() = default;
  // To the session that this node opened last; false, and nothing is sent, where there is none.
  virtual bool send(const std::string& node, const Order& order) = 0;
  // The next one that came; nothing where none is there.
  virtual std::optional<Report> receive() = 0;
  // A node whose session has broken, each once; silence is not told here. A hint, never a proof.
  virtual std::optional<std::string> next_broken() = 0;
};

// A monitor's side. It dials anew by itself for as long as it lives.
class MonitorTransport {
 public:
  virtual ~MonitorTransport() = default;
  virtual void send(const Report& report) = 0;
  virtual std::optional<Order> receive() = 0;
};

}  // namespace megalith::resilience
