#pragma once

#include <cstdint>
#include <filesystem>

namespace megalith::resilience {

// The Unix socket at which a supervisor hears the monitors of its own machine. It is in a directory of its owner alone,
// and either side asks the kernel who the other one is: nobody but this user is spoken to.
class ControlSocket {
 public:
  // Makes the directory if it is missing. A socket that a dead supervisor left is replaced. User error where one
  // listens already, where others may use the directory, and for a path that is too long for a socket.
  explicit ControlSocket(std::filesystem::path path);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // A connection of this user's, for the caller to close; -1: nobody waits. Does not wait.
  int accept();
  // Connections of others, which were closed.
  int64_t refused() const { return refused_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
  int64_t refused_ = 0;
};

// A connection to whoever of this user listens there, for the caller to close; -1: nobody does, or it has no time.
int connect_to_control_socket(const std::filesystem::path& path);

// A directory of this user, mode 0700; made if it is missing. User error for one that others may use.
void require_private_directory(const std::filesystem::path& directory);

}  // namespace megalith::resilience
