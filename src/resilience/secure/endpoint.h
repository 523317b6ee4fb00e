#pragma once

#include <cstdint>
#include <string>

namespace megalith::resilience {

// Where a supervisor is met over TCP.
struct Endpoint {
  std::string host;
  uint16_t port = 0;  // listening: 0 is any that is free

  std::string text() const;  // "node0:7000", "[::1]:7000"
  bool operator==(const Endpoint&) const = default;
};
// User error that begins with `what` where the text is no host:port.
Endpoint parse_endpoint(const std::string& text, const std::string& what);

// A socket that listens, for the caller to close, neither blocking nor inherited. User error for an address that this
// machine does not have, I/O error for a port that is taken.
int listen_at(const Endpoint& endpoint);
// The same that connects to it; -1: nobody is there, the name is unknown, `until` (monotonic seconds) has come, or
// `wake` can be read.
int connect_to(const Endpoint& endpoint, double until, int wake, std::string& problem);
// Of a connection: "10.0.0.7".
std::string peer_address(int socket);
uint16_t local_port(int socket);

}  // namespace megalith::resilience
