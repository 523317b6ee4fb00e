#include "resilience/secure/tls_dial.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "core/clock.h"
#include "core/error.h"

namespace megalith::resilience {

namespace {
constexpr double kConnectSeconds = 5.0;
constexpr double kForever = 1e18;
constexpr int kLookMilliseconds = 1000;
}  // namespace

TlsDial::TlsDial(Endpoint endpoint, std::filesystem::path credentials, std::string node)
    : endpoint_(std::move(endpoint)),
      folder_(std::move(credentials)),
      node_(std::move(node)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      thread_([this] { work(); }) {}

TlsDial::~TlsDial() {
  ends_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  thread_.join();
  if (const int local = take_local(); local >= 0) ::close(local);
  ::close(wake_);
}

std::string TlsDial::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

std::string TlsDial::alarm() const {
  const std::lock_guard lock(mutex_);
  return alarm_;
}

void TlsDial::end(const std::string& problem, bool is_refusal) {
  {
    const std::lock_guard lock(mutex_);
    problem_ = problem;
  }
  is_refusal_ = is_refusal;
  state_ = State::over;
}

void TlsDial::work() {
  const double until = monotonic_seconds() + kConnectSeconds;
  try {
    const double now = wall_seconds();
    const Credentials own = load_credentials(folder_, now, Role::monitor, node_);
    {
      const std::lock_guard lock(mutex_);
      alarm_ = expiry_alarm(own, now);
    }
    std::string problem;
    const int socket = connect_to(endpoint_, until, wake_, problem);
    if (socket < 0) return end(problem, false);
    TlsChannel channel(socket, TlsChannel::Side::connects, own);
    channel.advance();
    while (!channel.is_secure()) {
      if (!relay_until_over(channel, until))
        return end(channel.is_over() ? channel.problem() : "no answer", channel.is_refusal());
    }
    binding_ = channel.binding();
    local_ = channel.open_local();
    if (!channel.is_over()) state_ = State::secure;
    while (relay_until_over(channel, kForever)) {
    }
    end(channel.problem(), channel.is_refusal());
  } catch (const Error& error) {
    end(error.what(), error.kind() == ErrorKind::user);
  }
}

// One round of waiting and passing on; false once there is no more to do.
bool TlsDial::relay_until_over(TlsChannel& channel, double until) {
  channel.advance();
  const double left = until - monotonic_seconds();
  if (channel.is_over() || ends_ || left <= 0) return false;
  pollfd waits[] = {{.fd = channel.socket(), .events = channel.socket_events(), .revents = 0},
                    {.fd = channel.local(), .events = channel.local_events(), .revents = 0},
                    {.fd = wake_, .events = POLLIN, .revents = 0}};
  const int most = left > 1.0 ? kLookMilliseconds : static_cast<int>(std::ceil(left * 1000));
  if (::poll(waits, 3, most) < 0 && errno != EINTR) return false;
  for (const pollfd& wait : {waits[0], waits[1]}) {
    const bool is_broken = (wait.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    if (is_broken && wait.events == 0) channel.hang_up();
  }
  channel.advance();
  return !channel.is_over();
}

}  // namespace megalith::resilience
