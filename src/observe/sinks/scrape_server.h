#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "comm/store/socket.h"

namespace megalith::observe {

// Answers `GET /metrics` (and `GET /`) over HTTP with a page that is made anew for each request, on a thread of its
// own. Whoever asks for too much, or is silent or slow for kSeconds, is cut off; of more than kMostClients at a time
// the oldest is.
class ScrapeServer {
 public:
  using Page = std::function<std::string()>;
  static constexpr size_t kMostClients = 32;
  static constexpr double kSeconds = 2.0;

  // Port 0: one that is free. User error for an address that this machine does not have and for a port that is taken.
  ScrapeServer(const std::string& address, uint16_t port, Page page);
  ~ScrapeServer();
  ScrapeServer(const ScrapeServer&) = delete;
  ScrapeServer& operator=(const ScrapeServer&) = delete;

  uint16_t port() const { return listener_.local_port(); }

 private:
  struct Client {
    comm::Socket socket;
    double until = 0.0;  // monotonic seconds
    std::string request = {};
    std::string answer = {};
    bool has_asked = false;
    bool is_ready = false;  // to be read from, or written to
  };

  void run();
  void wait_for_events();
  void accept_client();
  // False when the client has been served, or has to go.
  bool attend(Client& client) const;
  std::string answer_to(const std::string& request) const;

  comm::Socket listener_;
  Page page_;
  std::list<Client> clients_;  // the oldest first
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace megalith::observe
