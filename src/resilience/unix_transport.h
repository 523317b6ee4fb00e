#pragma once

#include <filesystem>
#include <memory>

#include "resilience/transport.h"

namespace megalith::resilience {

// The transport over gRPC on a Unix socket (control_socket.h), for a supervisor and monitors of one machine. No timer
// of gRPC has a meaning, since it reads the wall clock: who is late is found out by our own messages and the monotonic
// clock, cancelled, and dialled anew. To be used by one thread.

// User error in a program that was built without gRPC.
void require_control_plane();

class UnixSupervisorTransport : public SupervisorTransport {
 public:
  // Until a report has come, at most so long.
  virtual void wait(double seconds) = 0;
  // Messages and connections that made no sense, so far.
  virtual int64_t refused() const = 0;
};
std::unique_ptr<UnixSupervisorTransport> listen_for_monitors(const std::filesystem::path& socket);

class UnixMonitorTransport : public MonitorTransport {
 public:
  // Until an order has come, at most so long.
  virtual void wait(double seconds) = 0;
  // Since something came from a supervisor; since the transport was made where nothing has yet.
  virtual double silent_seconds() const = 0;
};
std::unique_ptr<UnixMonitorTransport> dial_supervisor(const std::filesystem::path& socket);

}  // namespace megalith::resilience
