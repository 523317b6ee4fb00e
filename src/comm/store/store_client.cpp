#include <chrono>
#include <cmath>
#include <thread>

#include "comm/store/packet.h"
#include "comm/store/store.h"
#include "comm/store/store_proof.h"
#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

namespace {
constexpr double kPauseSeconds = 0.02;

PacketStream connect(const StoreClientOptions& options, double until) {
  const std::string where = fmt::format("the store at {} port {}", options.host, options.port);
  while (true) {
    Socket socket = connect_to(options.host, options.port, until);
    if (options.secret.empty() && !socket.to_loopback())
      user_error("{} is on another machine and needs a shared secret", where);
    PacketStream stream(std::move(socket), where);
    try {
      introduce(stream, {.secret = options.secret, .generation = options.generation, .rank = options.rank}, until);
      return stream;
    } catch (const Error&) {
      if (!stream.is_lost() || monotonic_seconds() + kPauseSeconds > until) throw;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kPauseSeconds));
  }
}
}  // namespace

StoreClient::StoreClient(const StoreClientOptions& options)
    : answer_deadline_(options.answer_deadline),
      stream_(connect(options, monotonic_seconds() + options.connect_deadline)) {}

void StoreClient::set(const std::string& key, const std::string& value) {
  request({.kind = PacketKind::set, .key = key, .value = value}, 0.0);
}

std::string StoreClient::get(const std::string& key, double seconds) {
  const auto milliseconds = static_cast<int64_t>(std::ceil(seconds * 1e3));
  const Packet answer = request({.kind = PacketKind::get, .number = milliseconds, .key = key}, seconds);
  if (answer.kind == PacketKind::timed_out) {
    fail(ErrorKind::comm, "nobody set '{}' in {} within {:.1f} s", key, stream_.where(), seconds);
  }
  return answer.value;
}

int64_t StoreClient::add(const std::string& key, int64_t amount) {
  return request({.kind = PacketKind::add, .number = amount, .key = key}, 0.0).number;
}

std::string StoreClient::compare_and_set(const std::string& key, const std::string& expected,
                                         const std::string& desired) {
  return request({.kind = PacketKind::compare_and_set, .key = key, .value = desired, .expected = expected}, 0.0).value;
}

int64_t StoreClient::delete_prefix(const std::string& prefix) {
  return request({.kind = PacketKind::delete_prefix, .key = prefix}, 0.0).number;
}

Packet StoreClient::request(const Packet& packet, double seconds) {
  const std::lock_guard lock(mutex_);
  const double until = monotonic_seconds() + seconds + answer_deadline_;
  stream_.write(packet, until);
  Packet answer = stream_.read(until);
  if (answer.kind == PacketKind::refused) {
    fail(ErrorKind::comm, "{} refuses to touch '{}': {}", stream_.where(), packet.key, answer.value);
  }
  return answer;
}

}  // namespace megalith::comm
