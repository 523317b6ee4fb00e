#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

namespace megalith::comm {

// An open TCP socket, not blocking.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

  // What the other side has sent so far is appended; false when it has closed or the connection broke.
  bool read_into(std::string& bytes, size_t at_most) const;
  // Writes as much as the kernel takes now and removes it; false when the connection broke.
  bool write_from(std::string& bytes) const;
  // What can be read into, or written from, the memory right now: how many bytes, or -1 when the connection broke.
  ssize_t read_some(std::span<std::byte> into) const;
  ssize_t write_some(std::span<const std::byte> bytes) const;
  // Wakes whoever waits for this socket, and ends the connection.
  void shut_down() const;
  // Until there is something to read (or room to write), or until the moment (monotonic seconds); false then.
  bool wait_readable(double until) const;
  bool wait_writable(double until) const;

  uint16_t local_port() const;
  // "10.0.0.7": under which address this end of a connection is known.
  std::string local_address() const;
  bool to_loopback() const;

 private:
  bool wait_for(short events, double until) const;

  int descriptor_ = -1;
};

bool is_loopback(const std::string& address);
// Under which address of this machine it is known at another. I/O error where no way leads there.
std::string address_towards(const std::string& address);

// User error for an address that this machine does not have, I/O error for a port that is taken.
Socket listen_on(const std::string& address, uint16_t port);
// Without a descriptor when nobody waits.
Socket accept_from(const Socket& listener);
// Tries again until `until`, for servers that start later than their clients and names that are known no earlier; comm
// error then, user error for a name that is still unknown.
Socket connect_to(const std::string& host, uint16_t port, double until);

// A peer that is gone makes a call fail, not this process end: libraries write to sockets without care for that. What
// somebody else wants to happen at SIGPIPE still does.
void ignore_broken_pipes();

}  // namespace megalith::comm
