#include "resilience/secure/tls_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/clock.h"
#include "core/error.h"

namespace megalith::resilience {

namespace {
constexpr double kHandshakeSeconds = 5.0;
constexpr double kClaimSeconds = 5.0;
constexpr double kFarewellSeconds = 0.3;
constexpr double kLookSeconds = 0.1;
constexpr double kRestSeconds = 0.1;
constexpr double kCheckSeconds = 3600.0;
constexpr int64_t kMostHandshakes = 256;
constexpr size_t kMostConnections = 5000;
constexpr int64_t kMostOfOneNode = 4;  // connections of a certificate with a node's name
constexpr rlim_t kDescriptors = 4 * kMostConnections;

// What epoll tells of a descriptor; of a connection twice its number, and one more for its local socket.
constexpr uint64_t kOfListener = 0;
constexpr uint64_t kOfWake = 1;

// The kernel's default of 1024 is a few hundred nodes.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kDescriptors) return;
  limit.rlim_cur = std::min(limit.rlim_max, kDescriptors);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void watch(int epoll, int operation, int descriptor, uint32_t events, uint64_t tag) {
  epoll_event event{.events = events, .data = {.u64 = tag}};
  ::epoll_ctl(epoll, operation, descriptor, &event);
}

void wake(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}
}  // namespace

TlsServer::TlsServer(const Endpoint& endpoint, std::filesystem::path credentials) : folder_(std::move(credentials)) {
  load_credentials(folder_, wall_seconds(), Role::supervisor);
  allow_many_descriptors();
  listener_ = listen_at(endpoint);
  port_ = local_port(listener_);
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (epoll_ < 0 || wake_ < 0) io_error_errno("cannot wait for connections");
  watch(epoll_, EPOLL_CTL_ADD, listener_, EPOLLIN, kOfListener);
  watch(epoll_, EPOLL_CTL_ADD, wake_, EPOLLIN, kOfWake);
  thread_ = std::thread([this] { work(); });
}

TlsServer::~TlsServer() {
  ends_ = true;
  wake(wake_);
  thread_.join();
  for (const int descriptor : accepted_) ::close(descriptor);
  for (const int descriptor : {listener_, epoll_, wake_}) ::close(descriptor);
}

int TlsServer::accept() {
  const std::lock_guard lock(mutex_);
  if (accepted_.empty()) return -1;
  const int descriptor = accepted_.front();
  accepted_.pop_front();
  return descriptor;
}

std::optional<TlsServer::Peer> TlsServer::claim(const std::string& binding) {
  const std::lock_guard lock(mutex_);
  const auto found = unclaimed_.find(binding);
  if (found == unclaimed_.end()) return std::nullopt;
  const int64_t number = found->second;
  unclaimed_.erase(found);
  const TlsChannel& channel = *connections_.at(number).channel;
  return Peer{.number = number, .identity = channel.peer(), .address = channel.address()};
}

void TlsServer::release(int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  found->second.released = monotonic_seconds();
}

// What follows runs on its own thread.

void TlsServer::work() {
  std::array<epoll_event, 64> events{};
  while (!ends_) {
    const int count =
        ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), static_cast<int>(kLookSeconds * 1000));
    for (int index = 0; index < count; ++index) {
      const epoll_event& event = events[static_cast<size_t>(index)];
      if (event.data.u64 == kOfListener) {
        accept_waiting();
      } else if (event.data.u64 == kOfWake) {
        uint64_t calls = 0;
        [[maybe_unused]] const ssize_t got = ::read(wake_, &calls, sizeof calls);
      } else {
        advance(static_cast<int64_t>(event.data.u64 / 2), (event.events & (EPOLLERR | EPOLLHUP)) != 0);
      }
    }
    if (monotonic_seconds() - looked_ >= kLookSeconds) tend();
  }
  const std::lock_guard lock(mutex_);
  connections_.clear();
}

void TlsServer::accept_waiting() {
  if (monotonic_seconds() < rests_until_) return;
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      begin(socket);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    alarms_.add(fmt::format("cannot take further connections: {}", std::strerror(errno)));
    rests_until_ = monotonic_seconds() + kRestSeconds;
    return watch(epoll_, EPOLL_CTL_MOD, listener_, 0, kOfListener);
  }
}

std::optional<Credentials> TlsServer::credentials() {
  const double now = wall_seconds();
  try {
    Credentials own = load_credentials(folder_, now, Role::supervisor);
    if (const std::string soon = expiry_alarm(own, now); !soon.empty()) alarms_.add(soon);
    return own;
  } catch (const Error& error) {
    alarms_.add(fmt::format("no monitor can connect: {}", error.what()));
    return std::nullopt;
  }
}

void TlsServer::begin(int socket) {
  const std::optional<Credentials> own = credentials();
  make_room();
  if (!own || connections_.size() >= kMostConnections) {
    ++refused_;
    ::close(socket);
    if (own) alarms_.add(fmt::format("a connection was refused: there are {} already", kMostConnections));
    return;
  }
  const int64_t number = ++last_number_;
  {
    const std::lock_guard lock(mutex_);
    connections_[number] = {.channel = std::make_unique<TlsChannel>(socket, TlsChannel::Side::accepts, *own),
                            .since = monotonic_seconds()};
  }
  ++handshakes_;
  advance(number, false);
}

// Who shakes hands in earnest is quick: of too many the oldest is left.
void TlsServer::make_room() {
  if (handshakes_ < kMostHandshakes) return;
  const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                   [](const auto& entry) { return !entry.second.channel->is_secure(); });
  if (oldest == connections_.end()) return;
  refuse(oldest->second, "it had not shown a certificate when too many others came");
  drop(oldest->first);
}

void TlsServer::advance(int64_t number, bool is_broken) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  TlsChannel& channel = *connection.channel;
  const bool was_secure = channel.is_secure();
  channel.advance();
  if (is_broken && !channel.is_over() && (channel.socket_events() == 0 || channel.local_events() == 0))
    channel.hang_up();
  if (!was_secure && channel.is_secure()) {
    --handshakes_;
    const auto is_same = [&](const auto& entry) {
      return entry.second.channel->is_secure() && entry.second.channel->peer() == channel.peer();
    };
    const bool is_too_many = !channel.peer().node.empty() &&
                             std::count_if(connections_.begin(), connections_.end(), is_same) > kMostOfOneNode;
    const int local = is_too_many ? -1 : channel.open_local();
    if (local < 0) {
      refuse(connection,
             is_too_many ? words_of(channel.peer()) + " has too many connections already" : channel.problem());
      return drop(number);
    }
    const std::lock_guard lock(mutex_);
    connection.since = monotonic_seconds();
    unclaimed_[channel.binding()] = number;
    accepted_.push_back(local);
    channel.advance();
  }
  if (!channel.is_over()) return wait_for(number, connection);
  if (!channel.is_secure()) {
    refuse(connection, channel.problem());
  } else if (is_unclaimed(channel)) {
    refuse(connection, words_of(channel.peer()) + " has opened no stream");
  } else if (channel.is_refusal()) {
    alarms_.add(fmt::format("{} at {}: {}", words_of(channel.peer()), channel.address(), channel.problem()));
  }
  drop(number);
}

bool TlsServer::is_unclaimed(const TlsChannel& channel) {
  const std::lock_guard lock(mutex_);
  return unclaimed_.contains(channel.binding());
}

void TlsServer::wait_for(int64_t number, Connection& connection) {
  const auto update = [&](int descriptor, short events, short& waits, uint64_t side) {
    if (descriptor < 0 || waits == events) return;
    // The events of poll() and epoll have the same numbers.
    watch(epoll_, waits == kUnknown ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, static_cast<uint32_t>(events),
          static_cast<uint64_t>(number) * 2 + side);
    waits = events;
  };
  update(connection.channel->socket(), connection.channel->socket_events(), connection.socket_waits, 0);
  update(connection.channel->local(), connection.channel->local_events(), connection.local_waits, 1);
}

void TlsServer::refuse(const Connection& connection, const std::string& why) {
  ++refused_;
  alarms_.add(fmt::format("a connection from {} was refused: {}", connection.channel->address(), why));
}

void TlsServer::drop(int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  if (!found->second.channel->is_secure()) --handshakes_;
  unclaimed_.erase(found->second.channel->binding());
  connections_.erase(found);
}

void TlsServer::tend() {
  looked_ = monotonic_seconds();
  if (rests_until_ > 0.0 && looked_ >= rests_until_) {
    rests_until_ = 0.0;
    watch(epoll_, EPOLL_CTL_MOD, listener_, EPOLLIN, kOfListener);
  }
  if (looked_ - checked_ >= kCheckSeconds) {
    checked_ = looked_;
    credentials();
  }
  std::vector<std::pair<int64_t, const char*>> late;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, connection] : connections_) {
      const double age = looked_ - connection.since;
      if (connection.released > 0.0) {
        if (looked_ - connection.released > kFarewellSeconds) late.emplace_back(number, nullptr);
      } else if (!connection.channel->is_secure() && age > kHandshakeSeconds) {
        late.emplace_back(number, "it has shown no certificate in time");
      } else if (age > kClaimSeconds && unclaimed_.contains(connection.channel->binding())) {
        late.emplace_back(number, "it has opened no stream in time");
      }
    }
  }
  for (const auto& [number, why] : late) {
    if (why != nullptr) refuse(connections_.at(number), why);
    drop(number);
  }
}

}  // namespace megalith::resilience
