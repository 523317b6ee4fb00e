#include "resilience/unix_transport.h"

#include "core/error.h"

namespace megalith::resilience {

void require_control_plane() {
  user_error(
      "this megalith was built without gRPC, which supervisors and monitors speak: install libgrpc++-dev, "
      "protobuf-compiler-grpc, libprotobuf-dev and protobuf-compiler and build it again; `megalith train` needs none");
}

std::unique_ptr<UnixSupervisorTransport> listen_for_monitors(const std::filesystem::path& /*socket*/) {
  require_control_plane();
  return nullptr;
}

std::unique_ptr<UnixMonitorTransport> dial_supervisor(const std::filesystem::path& /*socket*/) {
  require_control_plane();
  return nullptr;
}

}  // namespace megalith::resilience
