#include "resilience/control_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/file.h"

namespace megalith::resilience {

namespace {
constexpr int kBacklog = 128;

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof address.sun_path) {
    user_error("{} is too long for a socket: {} bytes, at most {} are possible; choose a shorter one", text,
               text.size(), sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

int new_socket() {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) io_error_errno("making a socket");
  return descriptor;
}

bool is_own(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}
}  // namespace

void require_private_directory(const std::filesystem::path& directory) {
  make_private_directory(directory);
  struct stat info {};
  if (::lstat(directory.c_str(), &info) != 0) io_error_errno(fmt::format("cannot look at {}", directory.string()));
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0) return;
  user_error("{} has owner {} and mode {:04o}: it must be a directory of this user alone (chmod 700)",
             directory.string(), info.st_uid, info.st_mode & 07777);
}

ControlSocket::ControlSocket(std::filesystem::path path) : path_(std::move(path)) {
  require_private_directory(path_.parent_path());
  const sockaddr_un address = address_of(path_);
  if (const int other = connect_to_control_socket(path_); other >= 0) {
    ::close(other);
    user_error("another supervisor listens at {}: end it first, or choose another run directory", path_.string());
  }
  remove_if_there(path_);
  descriptor_ = new_socket();
  if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(descriptor_, kBacklog) != 0) {
    const int problem = errno;
    ::close(descriptor_);
    errno = problem;
    io_error_errno(fmt::format("cannot listen at {}", path_.string()));
  }
}

ControlSocket::~ControlSocket() {
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

int ControlSocket::accept() {
  while (true) {
    const int connection = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (connection < 0 || is_own(connection)) return connection;
    ++refused_;
    ::close(connection);
  }
}

int connect_to_control_socket(const std::filesystem::path& path) {
  const sockaddr_un address = address_of(path);
  const int connection = new_socket();
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && is_own(connection))
    return connection;
  ::close(connection);
  return -1;
}

}  // namespace megalith::resilience
