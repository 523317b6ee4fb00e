#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "resilience/alarms.h"
#include "resilience/secure/endpoint.h"
#include "resilience/secure/tls_channel.h"

namespace megalith::resilience {

// Listens over TCP for whoever shows a certificate of the right authority, and hands their connections on as local
// sockets. The folder of credentials is read anew for each connection. Connections, handshakes and what is kept of each
// are bounded; its own deadlines go by the monotonic clock. Has a thread of its own.
class TlsServer {
 public:
  // User error for credentials that are not a supervisor's, and for an address that cannot be listened at.
  TlsServer(const Endpoint& endpoint, std::filesystem::path credentials);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  uint16_t port() const { return port_; }

  // A local socket of a new connection, for the caller to close; -1: there is none. Does not wait.
  int accept();

  struct Peer {
    int64_t number = 0;  // of the connection
    Identity identity;
    std::string address;
  };
  // Who is at the other end of the connection of this name (TlsChannel::binding). Once for each: nothing the second
  // time, and for a name that none has. A connection that nobody claims within five seconds is closed.
  std::optional<Peer> claim(const std::string& binding);
  // Closes it, once what was written to it has had time to leave.
  void release(int64_t number);

  // Connections that were refused, so far.
  int64_t refused() const { return refused_; }
  // What people should know: who was refused and why, credentials that cannot be used any longer or soon. The same is
  // said once a minute at most.
  std::optional<std::string> next_alarm() { return alarms_.next(); }

 private:
  static constexpr short kUnknown = -1;  // to epoll

  struct Connection {
    std::unique_ptr<TlsChannel> channel;
    double since = 0.0;             // it was accepted
    double released = 0.0;          // 0: it was not
    short socket_waits = kUnknown;  // for what epoll waits
    short local_waits = kUnknown;
  };

  void work();
  void accept_waiting();
  void begin(int socket);
  void advance(int64_t number, bool is_broken);
  bool is_unclaimed(const TlsChannel& channel);
  void wait_for(int64_t number, Connection& connection);
  void tend();
  void make_room();
  void refuse(const Connection& connection, const std::string& why);
  void drop(int64_t number);
  std::optional<Credentials> credentials();

  std::filesystem::path folder_;
  int listener_;
  uint16_t port_;
  int epoll_;
  int wake_;
  std::atomic<bool> ends_ = false;
  std::atomic<int64_t> refused_ = 0;
  Alarms alarms_;

  std::mutex mutex_;  // for what follows; the thread alone adds and removes connections
  std::map<int64_t, Connection> connections_;
  std::map<std::string, int64_t> unclaimed_;  // by binding
  std::deque<int> accepted_;

  int64_t last_number_ = 0;
  int64_t handshakes_ = 0;
  double rests_until_ = 0.0;  // the machine has no room for further connections
  double looked_ = 0.0;
  double checked_ = -1e18;  // its own credentials, though nobody connects
  std::thread thread_;
};

}  // namespace megalith::resilience
