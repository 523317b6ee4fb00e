#include "observe/scrape_server.h"

#include <fmt/format.h>

#include "core/clock.h"
#include "core/error.h"
#include "observe/log_files.h"

namespace megalith::observe {

namespace {
constexpr size_t kMaxRequestBytes = 16384;
constexpr double kRequestSeconds = 2.0;
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

// The head of a request, up to the empty line; as much of it as came where it did not come in time.
std::string read_request(const comm::Socket& client, double until) {
  std::string request;
  while (request.find("\r\n\r\n") == std::string::npos && request.size() < kMaxRequestBytes) {
    if (!client.wait_readable(until) || !client.read_into(request, kMaxRequestBytes)) break;
  }
  return request;
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
      if (!listener_.wait_readable(monotonic_seconds() + kStopPollSeconds)) continue;
      if (const comm::Socket client = comm::accept_from(listener_)) serve(client);
    }
  } catch (const std::exception& error) {
    log_warning(fmt::format("metrics are no longer served: {}", error.what()));
  }
}

void ScrapeServer::serve(const comm::Socket& client) const {
  const double until = monotonic_seconds() + kRequestSeconds;
  std::string answer = answer_to(read_request(client, until));
  while (!answer.empty() && client.wait_writable(until) && client.write_from(answer)) {
  }
}

std::string ScrapeServer::answer_to(const std::string& request) const {
  constexpr std::string_view kPlain = "text/plain; charset=utf-8";
  const std::string_view line = std::string_view(request).substr(0, request.find("\r\n"));
  const size_t end_of_path = line.find(" HTTP/1.");
  if (request.find("\r\n\r\n") == std::string::npos || end_of_path == std::string_view::npos) {
    return response("400 Bad Request", kPlain, "this is not an HTTP request\n");
  }
  if (!line.starts_with("GET ")) return response("405 Method Not Allowed", kPlain, "only GET is answered\n");
  std::string_view path = line.substr(4, end_of_path - 4);
  path = path.substr(0, path.find('?'));
  if (path != "/metrics" && path != "/") return response("404 Not Found", kPlain, "see /metrics\n");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", page_());
}

}  // namespace megalith::observe
