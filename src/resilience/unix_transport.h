#pragma once

#include <filesystem>
#include <memory>

#include "resilience/transport.h"

namespace megalith::resilience {

// The transport over gRPC on a Unix socket (control_socket.h), for a supervisor and monitors of one machine. No timer
// of gRPC has a meaning, since it reads the wall clock: who is late is found out by our own messages and the monotonic
// clock, cancelled, and dialled anew. To be used by one thread.

// gRPC is in a module beside the program, loaded when it is first needed: ranks start without its libraries, of which
// there are as many as all others. User error where there is no such module.
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

// What the module has under the names of these functions.
extern "C" UnixSupervisorTransport* megalith_listen_for_monitors(const std::filesystem::path& socket);
extern "C" UnixMonitorTransport* megalith_dial_supervisor(const std::filesystem::path& socket);

}  // namespace megalith::resilience
