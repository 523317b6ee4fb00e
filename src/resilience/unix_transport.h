#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "resilience/secure/endpoint.h"
#include "resilience/transport.h"

namespace megalith::resilience {

// The transport over gRPC, on a Unix socket (control_socket.h) for a supervisor and monitors of one machine, or over
// TCP between those who show each other certificates (secure/). No timer of gRPC has a meaning, since it reads the wall
// clock: who is late is found out by our own messages and the monotonic clock, cancelled, and dialled anew. To be used
// by one thread.

// gRPC is in a module beside the program, loaded when it is first needed: ranks start without its libraries, of which
// there are as many as all others. User error where there is no such module.
void require_control_plane();

// Where a supervisor is met.
struct Door {
  std::filesystem::path socket;  // of this machine; empty: over TCP
  Endpoint endpoint;
  std::filesystem::path credentials;  // a folder (secure/credentials.h); over TCP alone

  std::string text() const { return socket.empty() ? endpoint.text() : socket.string(); }
};

class UnixSupervisorTransport : public SupervisorTransport {
 public:
  // Until a report has come, at most so long.
  virtual void wait(double seconds) = 0;
  // Messages and connections that made no sense, so far.
  virtual int64_t refused() const = 0;
  // What people should know: who was refused and why, credentials that expire.
  virtual std::optional<std::string> next_alarm() = 0;
  // Over TCP: where it listens.
  virtual uint16_t port() const = 0;
};
// User error for a door at which nobody can listen, and for credentials that are not a supervisor's.
std::unique_ptr<UnixSupervisorTransport> listen_for_monitors(const Door& door);

class UnixMonitorTransport : public MonitorTransport {
 public:
  // Until an order has come, at most so long.
  virtual void wait(double seconds) = 0;
  // Since something came from a supervisor; since the transport was made where nothing has yet.
  virtual double silent_seconds() const = 0;
  virtual std::optional<std::string> next_alarm() = 0;
  // Before any supervisor was heard: why one refuses this node, which will not go away by itself; empty: none does.
  virtual std::string refusal() const = 0;
};
// To all of these at once, for the monitor of this node.
std::unique_ptr<UnixMonitorTransport> dial_supervisors(const std::vector<Door>& doors, const std::string& node);

// What the module has under the names of these functions.
extern "C" UnixSupervisorTransport* megalith_listen_for_monitors(const Door& door);
extern "C" UnixMonitorTransport* megalith_dial_supervisors(const std::vector<Door>& doors, const std::string& node);

}  // namespace megalith::resilience
