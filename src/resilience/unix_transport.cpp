#include "resilience/unix_transport.h"

#include <dlfcn.h>

#include "core/error.h"

namespace megalith::resilience {

namespace {
struct Module {
  decltype(&megalith_listen_for_monitors) listen = nullptr;
  decltype(&megalith_dial_supervisors) dial = nullptr;
  std::string problem;  // why there is none
};

Module load_module() {
  void* module = ::dlopen("libmegalith_control.so", RTLD_NOW | RTLD_LOCAL);
  void* listen = module == nullptr ? nullptr : ::dlsym(module, "megalith_listen_for_monitors");
  void* dial = listen == nullptr ? nullptr : ::dlsym(module, "megalith_dial_supervisors");
  if (dial == nullptr) return {.problem = ::dlerror()};
  return {.listen = reinterpret_cast<decltype(&megalith_listen_for_monitors)>(listen),
          .dial = reinterpret_cast<decltype(&megalith_dial_supervisors)>(dial)};
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

std::unique_ptr<UnixSupervisorTransport> listen_for_monitors(const Door& door) {
  require_control_plane();
  return std::unique_ptr<UnixSupervisorTransport>(module().listen(door));
}

std::unique_ptr<UnixMonitorTransport> dial_supervisors(const std::vector<Door>& doors, const std::string& node) {
  require_control_plane();
  return std::unique_ptr<UnixMonitorTransport>(module().dial(doors, node));
}

}  // namespace megalith::resilience
