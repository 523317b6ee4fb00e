#include "core/process/launcher_line.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/error.h"

namespace megalith {

namespace {
constexpr size_t kMaxSecretBytes = 4096;
constexpr char kSecret = 's';  // begins the first packet: an empty one would read as the end of the line
}  // namespace

LauncherLine LauncherLine::inherit(int descriptor) {
  if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    user_error("{}={} names no open descriptor of this process: unset it, or let `--nproc` start the ranks", kVariable,
               descriptor);
  }
  LauncherLine line(descriptor);
  line.receive_secret();
  return line;
}

LauncherLine::~LauncherLine() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LauncherLine::LauncherLine(LauncherLine&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), secret_(std::move(other.secret_)), is_over_(other.is_over_) {}

bool LauncherLine::send(char word) const {
  const int error = errno;
  const ssize_t count = ::send(descriptor_, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  // A full line holds enough that says the same.
  const bool is_heard = count == 1 || errno == EAGAIN || errno == EWOULDBLOCK;
  errno = error;
  return is_heard;
}

void LauncherLine::send_secret(const std::string& secret) const {
  const std::string packet = kSecret + secret;
  if (packet.size() > kMaxSecretBytes) user_error("a secret of {} bytes is too long", secret.size());
  if (::send(descriptor_, packet.data(), packet.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size()))
    io_error_errno("handing a rank the secret of its run");
}

void LauncherLine::receive_secret() {
  std::array<char, kMaxSecretBytes> packet{};
  const ssize_t count = ::recv(descriptor_, packet.data(), packet.size(), MSG_DONTWAIT);
  if (count < 1 || packet[0] != kSecret)
    user_error("{}={} is not the line of a launcher: unset it", kVariable, descriptor_);
  secret_.assign(packet.data() + 1, static_cast<size_t>(count) - 1);
}

std::optional<char> LauncherLine::receive() {
  char word = 0;
  const ssize_t count = is_over_ ? 0 : ::recv(descriptor_, &word, 1, MSG_DONTWAIT);
  if (count == 1) return word;
  is_over_ = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  return std::nullopt;
}

}  // namespace megalith
