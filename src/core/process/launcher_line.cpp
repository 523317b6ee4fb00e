#include "core/process/launcher_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/clock.h"
#include "core/error.h"

namespace megalith {

namespace {
constexpr size_t kMaxPacketBytes = 4096;
constexpr double kSecretSeconds = 20.0;
// The first character of a packet: an empty one would read as the end of the line.
constexpr char kSecret = 's';
constexpr char kText = 't';
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

void LauncherLine::send_packet(char kind, const std::string& text, const char* what) const {
  const std::string packet = kind + text;
  if (packet.size() > kMaxPacketBytes) user_error("{} of {} bytes is too long", what, text.size());
  if (::send(descriptor_, packet.data(), packet.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size()))
    io_error_errno(fmt::format("handing over {}", what));
}

void LauncherLine::send_secret(const std::string& secret) const {
  send_packet(kSecret, secret, "the secret of a run");
}

void LauncherLine::send_text(const std::string& text) const {
  send_packet(kText, text, "a text");
}

bool LauncherLine::is_readable_within(double seconds) const {
  const double until = monotonic_seconds() + seconds;
  pollfd line{descriptor_, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&line, 1, static_cast<int>(std::max(0.0, until - monotonic_seconds()) * 1e3));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

std::optional<std::string> LauncherLine::await_text(double seconds) {
  if (!is_readable_within(seconds)) return std::nullopt;
  std::array<char, kMaxPacketBytes> packet{};
  const ssize_t count = ::recv(descriptor_, packet.data(), packet.size(), MSG_DONTWAIT);
  is_over_ = count == 0;
  if (count < 1 || packet[0] != kText) return std::nullopt;
  return std::string(packet.data() + 1, static_cast<size_t>(count) - 1);
}

void LauncherLine::receive_secret() {
  std::array<char, kMaxPacketBytes> packet{};
  is_readable_within(kSecretSeconds);
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
