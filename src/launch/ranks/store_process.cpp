#include "launch/ranks/store_process.h"

#include <poll.h>

#include <charconv>
#include <chrono>
#include <limits>
#include <sstream>
#include <thread>

#include "comm/store/store.h"
#include "config/environment/variables.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/process/stop_signals.h"

namespace megalith::launch {

namespace {
constexpr double kRequestSeconds = 5.0;

StoreRequest receive_request(LauncherLine& line) {
  StoreRequest request;
  std::istringstream words(line.await_text(kRequestSeconds).value_or(""));
  if (!(words >> request.generation >> request.ranks >> request.address) || request.generation < 0 ||
      request.ranks < 1) {
    user_error("the starter of this store has not said whom to serve: `megalith serve-store` is for monitors");
  }
  return request;
}

// Until the next look.
void pause(const LauncherLine& line, bool starter_is_gone) {
  constexpr int kMilliseconds = 100;
  pollfd starter{line.descriptor(), POLLIN, 0};
  if (starter_is_gone) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kMilliseconds));
  } else {
    ::poll(&starter, 1, kMilliseconds);
  }
}
}  // namespace

void ask_for_store(const LauncherLine& line, const StoreRequest& request) {
  line.send_text(fmt::format("{} {} {}", request.generation, request.ranks, request.address));
}

std::optional<int> port_of_store(LauncherLine& line, double seconds) {
  const std::string text = line.await_text(seconds).value_or("");
  int port = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (status != std::errc{} || port < 1) return std::nullopt;
  return port;
}

void serve_store(LauncherLine line, const StorePatience& patience) {
  stop_signals::ignore();
  const StoreRequest request = receive_request(line);
  const comm::StoreServer server({.address = request.address,
                                  .generation = request.generation,
                                  .secret = line.secret(),
                                  .expected_clients = static_cast<size_t>(request.ranks)});
  line.send_text(std::to_string(server.port()));
  bool somebody_came = false;
  for (double seen = monotonic_seconds(); !line.receive(); pause(line, line.is_over())) {
    const double now = monotonic_seconds();
    if (server.clients() > 0) {
      somebody_came = true;
      seen = now;
    }
    if (somebody_came ? now - seen > patience.left : line.is_over() && now - seen > patience.lonely) return;
  }
}

void serve_store() {
  const config::Lookup environment = config::process_environment;
  const auto descriptor =
      config::Variables(environment).number(LauncherLine::kVariable, 0, std::numeric_limits<int>::max());
  if (!descriptor) user_error("{} is not set: `megalith serve-store` is for monitors", LauncherLine::kVariable);
  serve_store(LauncherLine::inherit(static_cast<int>(*descriptor)));
}

}  // namespace megalith::launch
