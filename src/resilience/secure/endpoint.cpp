#include "resilience/secure/endpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/clock.h"
#include "core/error.h"

namespace megalith::resilience {

namespace {
constexpr int kBacklog = 1024;
constexpr int kMostPort = 65535;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const Endpoint& endpoint, int flags, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (status != 0) problem = fmt::format("{}: {}", endpoint.host, ::gai_strerror(status));
  return {status == 0 ? found : nullptr, ::freeaddrinfo};
}

int new_socket(const addrinfo& address) {
  const int made = ::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (made >= 0) ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

// True once the connection stands.
bool finish_connecting(int socket, double until, int wake, std::string& problem) {
  while (true) {
    pollfd waits[] = {{.fd = socket, .events = POLLOUT, .revents = 0}, {.fd = wake, .events = POLLIN, .revents = 0}};
    const double left = until - monotonic_seconds();
    const int ready = left <= 0 ? 0 : ::poll(waits, 2, static_cast<int>(std::ceil(left * 1000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || waits[1].revents != 0) {
      problem = "no answer";
      return false;
    }
    int status = 0;
    socklen_t size = sizeof status;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &status, &size);
    if (status != 0) problem = std::strerror(status);
    return status == 0;
  }
}
}  // namespace

std::string Endpoint::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Endpoint parse_endpoint(const std::string& text, const std::string& what) {
  const size_t colon = text.rfind(':');
  Endpoint endpoint{.host = text.substr(0, std::min(colon, text.size()))};
  const bool is_bracketed = endpoint.host.size() > 2 && endpoint.host.starts_with('[') && endpoint.host.ends_with(']');
  if (is_bracketed) endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  const std::string digits = colon == std::string::npos ? "" : text.substr(colon + 1);
  int port = -1;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool is_number = status == std::errc() && end == digits.data() + digits.size();
  const bool is_plain = is_bracketed || endpoint.host.find_first_of(":[]") == std::string::npos;
  if (endpoint.host.empty() || !is_plain || !is_number || port < 0 || port > kMostPort)
    user_error("{} '{}' is no host:port, such as node0:7000 or [fd00::1]:7000", what, text);
  endpoint.port = static_cast<uint16_t>(port);
  return endpoint;
}

int listen_at(const Endpoint& endpoint) {
  std::string problem;
  const Addresses addresses = resolve(endpoint, AI_PASSIVE, problem);
  if (!addresses) user_error("cannot listen at {}: {}", endpoint.text(), problem);
  const int made = new_socket(*addresses);
  if (made < 0) io_error_errno("making a socket");
  const int on = 1;
  ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(made, addresses->ai_addr, addresses->ai_addrlen) == 0 && ::listen(made, kBacklog) == 0) return made;
  const int status = errno;
  ::close(made);
  if (status == EADDRNOTAVAIL)
    user_error("cannot listen at {}: this machine does not have that address", endpoint.text());
  errno = status;
  io_error_errno(fmt::format("cannot listen at {}", endpoint.text()));
}

int connect_to(const Endpoint& endpoint, double until, int wake, std::string& problem) {
  const Addresses addresses = resolve(endpoint, 0, problem);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const int made = new_socket(*address);
    if (made < 0) {
      problem = std::strerror(errno);
      continue;
    }
    const int status = ::connect(made, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (status == 0 || (status == EINPROGRESS && finish_connecting(made, until, wake, problem))) return made;
    if (status != EINPROGRESS) problem = std::strerror(status);
    ::close(made);
  }
  return -1;
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "?";
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

uint16_t local_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace megalith::resilience
