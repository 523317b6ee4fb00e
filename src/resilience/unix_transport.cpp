#include "resilience/unix_transport.h"

#include <dlfcn.h>

#include "core/error.h"

namespace megalith::resilience {

namespace {
struct Module {
  decltype(&megalith_listen_for_monitors) listen = nullptr;
  decltype(&megalith_dial_supervisor) dial = nullptr;
  std::string problem;  // why there is none
};

Module load_module() {
  void* module = ::dlopen("libmegalith_control.so", RTLD_NOW | RTLD_LOCAL);
  void* listen = module == nullptr ? nullptr : ::dlsym(module, "megalith_listen_for_monitors");
  void* dial = listen == nullptr ? nullptr : ::dlsym(module, "megalith_dial_supervisor");
  if (dial == nullptr) return {.problem = ::dlerror()};
  return {.listen = reinterpret_cast<decltype(&megalith_listen_for_monitors)>(listen),
          .dial = reinterpret_cast<decltype(&megalith_dial_supervisor)>(dial)};
}

const Module& module() {
  static const Module loaded = load_module();
  return loaded;
}
}  // namespace

void require_control_plane() {
  if (module().dial != nullptr) return;
  user_error(
      "supervisors and monitors speak gRPC, and this megalith has no module for it ({}): install libgrpc++-dev, "
      "protobuf-compiler-grpc, libprotobuf-dev and protobuf-compiler and build it again; `megalith train` needs none",
      module().problem);
}

std::unique_ptr<UnixSupervisorTransport> listen_for_monitors(const std::filesystem::path& socket) {
  require_control_plane();
  return std::unique_ptr<UnixSupervisorTransport>(module().listen(socket));
}

std::unique_ptr<UnixMonitorTransport> dial_supervisor(const std::filesystem::path& socket) {
  require_control_plane();
  return std::unique_ptr<UnixMonitorTransport>(module().dial(socket));
}

}  // namespace megalith::resilience
