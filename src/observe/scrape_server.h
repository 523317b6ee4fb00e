#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "comm/socket.h"

namespace megalith::observe {

// Answers `GET /metrics` (and `GET /`) over HTTP with a page that is made anew for each request, on a thread of its
// own, one connection after the other. Whoever is slow or asks for too much is cut off.
class ScrapeServer {
 public:
  using Page = std::function<std::string()>;

  // Port 0: one that is free. User error for an address that this machine does not have and for a port that is taken.
  ScrapeServer(const std::string& address, uint16_t port, Page page);
  ~ScrapeServer();
  ScrapeServer(const ScrapeServer&) = delete;
  ScrapeServer& operator=(const ScrapeServer&) = delete;

  uint16_t port() const { return listener_.local_port(); }

 private:
  void run();
  void serve(const comm::Socket& client) const;
  std::string answer_to(const std::string& request) const;

  comm::Socket listener_;
  Page page_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace megalith::observe
