#pragma once

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "resilience/secure/endpoint.h"
#include "resilience/secure/tls_channel.h"

namespace megalith::resilience {

// One attempt to reach a supervisor over TCP, and the connection that comes of it, with a thread of its own. Reads the
// folder of credentials anew.
class TlsDial {
 public:
  // Begins, and does not wait. `node`: whose monitor this is.
  TlsDial(Endpoint endpoint, std::filesystem::path credentials, std::string node);
  ~TlsDial();
  TlsDial(const TlsDial&) = delete;
  TlsDial& operator=(const TlsDial&) = delete;

  enum class State { connecting, secure, over };
  State state() const { return state_; }

  // Once it is secure: a local socket of the connection, for the caller to close; -1: it was taken. The name of the
  // connection, for TlsServer::claim().
  int take_local() { return local_.exchange(-1); }
  const std::string& binding() const { return binding_; }

  // Why it is over; empty: the supervisor has left.
  std::string problem() const;
  // It is a matter of certificates.
  bool is_refusal() const { return is_refusal_; }
  // What people should know of credentials that expire soon; empty: nothing.
  std::string alarm() const;

 private:
  void work();
  bool relay_until_over(TlsChannel& channel, double until);
  void end(const std::string& problem, bool is_refusal);

  Endpoint endpoint_;
  std::filesystem::path folder_;
  std::string node_;
  int wake_;
  std::atomic<bool> ends_ = false;
  std::atomic<State> state_ = State::connecting;
  std::atomic<bool> is_refusal_ = false;
  std::atomic<int> local_ = -1;
  std::string binding_;  // written before it is secure
  mutable std::mutex mutex_;
  std::string problem_;
  std::string alarm_;
  std::thread thread_;
};

}  // namespace megalith::resilience
