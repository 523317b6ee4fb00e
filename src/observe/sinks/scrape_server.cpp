#include "observe/sinks/scrape_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "observe/sinks/log_files.h"

namespace megalith::observe {

namespace {
constexpr size_t kMaxRequestBytes = 16384;
constexpr double kStopPollSeconds = 0.2;

comm::Socket listen(const std::string& address, uint16_t port) {
  try {
    return comm::listen_on(address, port);
  } catch (const Error& error) {
    user_error(
        "metrics cannot be served: {}; choose another exp_manager.prometheus.port or .address, or port=0 for none",
        error.what());
  }
}

// Up to the empty line that ends its head.
bool is_whole(const std::string& request) {
  return request.find("\r\n\r\n") != std::string::npos;
}

std::string response(std::string_view status, std::string_view type, const std::string& body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     type, body.size(), body);
}
}  // namespace

ScrapeServer::ScrapeServer(const std::string& address, uint16_t port, Page page)
    : listener_(listen(address, port)), page_(std::move(page)), thread_([this] { run(); }) {}

ScrapeServer::~ScrapeServer() {
  stop_ = true;
  thread_.join();
}

void ScrapeServer::run() {
  try {
    while (!stop_) {
      wait_for_events();
      std::erase_if(clients_, [this](Client& client) { return !attend(client); });
    }
  } catch (const std::exception& error) {
    log_warning(fmt::format("metrics are no longer served: {}", error.what()));
  }
}

void ScrapeServer::wait_for_events() {
  std::vector<pollfd> watched = {{listener_.descriptor(), POLLIN, 0}};
  for (const Client& client : clients_)
    watched.push_back({client.socket.descriptor(), static_cast<short>(client.has_asked ? POLLOUT : POLLIN), 0});
  ::poll(watched.data(), watched.size(), static_cast<int>(std::ceil(kStopPollSeconds * 1e3)));
  auto event = watched.begin();
  const bool somebody_comes = event->revents != 0;
  for (Client& client : clients_) client.is_ready = (++event)->revents != 0;
  if (somebody_comes) accept_client();
}

void ScrapeServer::accept_client() {
  comm::Socket socket = comm::accept_from(listener_);
  // Where there are no descriptors left, the listener stays readable.
  if (!socket) return std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (clients_.size() >= kMostClients) clients_.pop_front();
  clients_.push_back({.socket = std::move(socket), .until = monotonic_seconds() + kSeconds});
}

bool ScrapeServer::attend(Client& client) const {
  if (monotonic_seconds() > client.until) return false;
  if (!client.is_ready) return true;
  if (!client.has_asked) {
    const bool is_open = client.socket.read_into(client.request, kMaxRequestBytes);
    client.has_asked = is_whole(client.request) || client.request.size() >= kMaxRequestBytes;
    if (!client.has_asked) return is_open;
    client.answer = answer_to(client.request);
  }
  return client.socket.write_from(client.answer) && !client.answer.empty();
}

std::string ScrapeServer::answer_to(const std::string& request) const {
  constexpr std::string_view kPlain = "text/plain; charset=utf-8";
  const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
  const size_t end_of_path = line.find(" HTTP/1.");
  if (!is_whole(request) || end_of_path == std::string_view::npos) {
    return response("400 Bad Request", kPlain, "this is not an HTTP request\n");
  }
  if (!line.starts_with("GET ")) return response("405 Method Not Allowed", kPlain, "only GET is answered\n");
  std::string_view path = line.substr(4, end_of_path - 4);
  path = path.substr(0, path.find('?'));
  if (path != "/metrics" && path != "/") return response("404 Not Found", kPlain, "see /metrics\n");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", page_());
}

}  // namespace megalith::observe
