#include "comm/store/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

namespace {
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) user_error("no address is known for host '{}': {}", host, ::gai_strerror(status));
  return {found, &::freeaddrinfo};
}

// None where the name is not known, which may change: clusters name a machine when it is up.
Addresses known_addresses(const std::string& host, uint16_t port) {
  try {
    return resolve(host, port, 0);
  } catch (const Error&) {
    return {nullptr, &::freeaddrinfo};
  }
}

Socket socket_for(const addrinfo& address) {
  return Socket(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
}

void send_small_packets_at_once(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket try_to_connect(const addrinfo& address, double until) {
  Socket socket = socket_for(address);
  if (!socket) return {};
  if (::connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS || !socket.wait_writable(until)) return {};
    int failure = 0;
    socklen_t length = sizeof failure;
    if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &failure, &length) != 0 || failure != 0) return {};
  }
  send_small_packets_at_once(socket);
  return socket;
}

// Nothing to read, or no room to write, at this moment.
bool is_for_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

sockaddr_storage name_of_socket(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    io_error_errno("asking a socket for its address");
  }
  return address;
}
}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

bool Socket::read_into(std::string& bytes, size_t at_most) const {
  std::byte chunk[16384];
  while (bytes.size() < at_most) {
    const ssize_t count = read_some({chunk, std::min(sizeof chunk, at_most - bytes.size())});
    if (count <= 0) return count == 0;
    bytes.append(reinterpret_cast<const char*>(chunk), static_cast<size_t>(count));
  }
  return true;
}

bool Socket::write_from(std::string& bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = write_some(std::as_bytes(std::span(bytes)));
    if (count <= 0) return count == 0;
    bytes.erase(0, static_cast<size_t>(count));
  }
  return true;
}

ssize_t Socket::read_some(std::span<std::byte> into) const {
  const ssize_t count = ::recv(descriptor_, into.data(), into.size(), 0);
  if (count > 0) return count;
  return count < 0 && is_for_now(errno) ? 0 : -1;
}

ssize_t Socket::write_some(std::span<const std::byte> bytes) const {
  const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return count < 0 && is_for_now(errno) ? 0 : count;
}

void Socket::shut_down() const {
  ::shutdown(descriptor_, SHUT_RDWR);
}

bool Socket::wait_readable(double until) const {
  return wait_for(POLLIN, until);
}

bool Socket::wait_writable(double until) const {
  return wait_for(POLLOUT, until);
}

bool Socket::wait_for(short events, double until) const {
  while (true) {
    const double left = until - monotonic_seconds();
    if (left <= 0.0) return false;
    pollfd watched{.fd = descriptor_, .events = events, .revents = 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::ceil(std::min(left, 60.0) * 1e3)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) io_error_errno("waiting for a socket");
  }
}

uint16_t Socket::local_port() const {
  const sockaddr_storage address = name_of_socket(descriptor_);
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

std::string Socket::local_address() const {
  const sockaddr_storage address = name_of_socket(descriptor_);
  char text[INET6_ADDRSTRLEN] = {};
  const void* raw = address.ss_family == AF_INET
                        ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                        : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  if (::inet_ntop(address.ss_family, raw, text, sizeof text) == nullptr) io_error_errno("writing an address");
  return text;
}

bool Socket::to_loopback() const {
  return is_loopback(name_of_socket(descriptor_));
}

bool is_loopback(const std::string& address) {
  const Addresses found = resolve(address, 0, AI_NUMERICHOST);
  sockaddr_storage storage{};
  std::memcpy(&storage, found->ai_addr, found->ai_addrlen);
  return is_loopback(storage);
}

// A datagram socket is "connected" by choosing a way; nothing is sent.
std::string address_towards(const std::string& address) {
  constexpr uint16_t kAnyPort = 9;
  const Addresses found = resolve(address, kAnyPort, AI_NUMERICHOST);
  const Socket socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.descriptor(), found->ai_addr, found->ai_addrlen) != 0)
    io_error_errno(fmt::format("finding the way to {}", address));
  return socket.local_address();
}

Socket listen_on(const std::string& address, uint16_t port) {
  const Addresses found = resolve(address, port, AI_PASSIVE);
  Socket socket = socket_for(*found);
  const int on = 1;
  if (!socket || ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.descriptor(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.descriptor(), SOMAXCONN) != 0) {
    io_error_errno(fmt::format("listening on {} port {}", address, port));
  }
  return socket;
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) send_small_packets_at_once(socket);
  return socket;
}

Socket connect_to(const std::string& host, uint16_t port, double until) {
  do {
    const Addresses found = known_addresses(host, port);
    for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
      Socket socket = try_to_connect(*address, until);
      if (socket) return socket;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (monotonic_seconds() < until);
  resolve(host, port, 0);
  fail(ErrorKind::comm, "nobody answers at {} port {}", host, port);
}

void ignore_broken_pipes() {
  struct sigaction now {};
  ::sigaction(SIGPIPE, nullptr, &now);
  if (now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace megalith::comm
