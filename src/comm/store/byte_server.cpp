#include "comm/store/byte_server.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <vector>

#include "comm/store/store_proof.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash/crypto.h"

namespace megalith::comm {

namespace {
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr size_t kSecretBytes = 32;
constexpr size_t kMaxConnections = 1024;
constexpr int kMaxStrangers = 64;
constexpr double kHelloSeconds = 5.0;
constexpr double kIdleSeconds = 3600.0;  // between the requests of a client
constexpr double kWriteSeconds = 60.0;   // for a client to take a piece

// As a read asks for them; 0 for what is no number of bytes of one piece.
int64_t bytes_asked_for(const Packet& request) {
  int64_t bytes = 0;
  const char* end = request.value.data() + request.value.size();
  const auto [rest, error] = std::from_chars(request.value.data(), end, bytes);
  return error == std::errc() && rest == end && bytes > 0 && bytes <= kPieceBytes ? bytes : 0;
}

// False: the other side does not know the secret.
bool welcome(PacketStream& stream, const std::string& secret) {
  const double until = monotonic_seconds() + kHelloSeconds;
  Introduction introduction{.server_nonce = random_bytes(kNonceBytes)};
  stream.write({.kind = PacketKind::challenge, .value = introduction.server_nonce}, until);
  const Packet hello = stream.read(until, kMaxHelloBytes);
  introduction.client_nonce = hello.expected;
  introduction.generation = hello.number;
  introduction.rank = hello.key;
  const bool proven = equal_in_constant_time(hello.value, client_proof(secret, introduction));
  const Packet refusal{.kind = PacketKind::refused, .value = "the secret is another"};
  stream.write(proven ? Packet{.kind = PacketKind::ok, .value = server_proof(secret, introduction)} : refusal, until);
  return proven;
}

PacketStream connect(const ByteServerAddress& address, const std::string& who, double until) {
  PacketStream stream(connect_to(address.address, address.port, until), who);
  introduce(stream, {.secret = address.secret}, until);
  return stream;
}
}  // namespace

ByteServer::ByteServer(const std::string& address)
    : secret_(random_bytes(kSecretBytes)), listener_(listen_on(address, 0)), acceptor_([this] { accept_clients(); }) {}

ByteServer::~ByteServer() {
  {
    const std::lock_guard lock(connections_mutex_);
    stopping_ = true;
    listener_.shut_down();
    for (const Connection& connection : connections_) connection.stream.socket().shut_down();
  }
  acceptor_.join();
  for (Connection& connection : connections_) connection.thread.join();
}

ByteServerAddress ByteServer::address() const {
  return {.address = listener_.local_address(), .port = listener_.local_port(), .secret = secret_};
}

void ByteServer::offer(const std::string& name, int64_t bytes, Read read) {
  const std::unique_lock lock(offers_mutex_);
  offers_[name] = {.bytes = bytes, .read = std::move(read)};
}

void ByteServer::withdraw(const std::string& name) {
  const std::unique_lock lock(offers_mutex_);
  offers_.erase(name);
}

void ByteServer::accept_clients() {
  while (true) {
    listener_.wait_readable(monotonic_seconds() + kIdleSeconds);
    const std::lock_guard lock(connections_mutex_);
    if (stopping_) return;
    forget_ended();
    Socket socket = accept_from(listener_);
    // Where there are no descriptors left, the listener stays readable.
    if (!socket) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!socket || connections_.size() >= kMaxConnections) continue;
    cut_off_stranger();
    connections_.push_back({.stream = PacketStream(std::move(socket), "a reader")});
    Connection& connection = connections_.back();
    connection.thread = std::thread([this, &connection] {
      try {
        converse(connection);
      } catch (const std::exception&) {
        // It has left, or speaks another language.
      }
      const std::lock_guard ending(connections_mutex_);
      connection.stream.socket().shut_down();
      connection.is_over = true;
    });
  }
}

void ByteServer::forget_ended() {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    if (connection->is_over) connection->thread.join();
    connection = connection->is_over ? connections_.erase(connection) : std::next(connection);
  }
}

void ByteServer::cut_off_stranger() {
  const auto is_stranger = [](const Connection& connection) {
    return !connection.is_known && !connection.is_cut_off && !connection.is_over;
  };
  if (std::count_if(connections_.begin(), connections_.end(), is_stranger) < kMaxStrangers) return;
  Connection& oldest = *std::find_if(connections_.begin(), connections_.end(), is_stranger);
  oldest.stream.socket().shut_down();
  oldest.is_cut_off = true;  // and its thread ends
}

void ByteServer::converse(Connection& connection) {
  PacketStream& stream = connection.stream;
  if (!welcome(stream, secret_)) return;
  {
    const std::lock_guard lock(connections_mutex_);
    connection.is_known = true;
  }
  std::vector<std::byte> buffer(static_cast<size_t>(kPieceBytes));
  while (true) answer(stream, stream.read(monotonic_seconds() + kIdleSeconds), buffer);
}

void ByteServer::answer(PacketStream& stream, const Packet& request, std::span<std::byte> buffer) const {
  const double until = monotonic_seconds() + kWriteSeconds;
  const std::span<std::byte> piece = buffer.first(static_cast<size_t>(bytes_asked_for(request)));
  std::string refusal = "that is no request";
  if (request.kind == PacketKind::read && !piece.empty()) refusal = read(request.key, request.number, piece);
  if (!refusal.empty()) return stream.write({.kind = PacketKind::refused, .value = refusal}, until);
  stream.write({.kind = PacketKind::ok}, until);
  stream.write_bytes(piece, until);
}

std::string ByteServer::read(const std::string& name, int64_t offset, std::span<std::byte> into) const {
  const std::shared_lock lock(offers_mutex_);
  const auto found = offers_.find(name);
  if (found == offers_.end()) return "that is not, or no longer, offered";
  const auto bytes = static_cast<int64_t>(into.size());
  if (offset < 0 || bytes > found->second.bytes || offset > found->second.bytes - bytes) return "it is not that long";
  try {
    found->second.read(offset, into);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

ByteReader::ByteReader(const ByteServerAddress& address, const std::string& who, double deadline)
    : stream_(connect(address, who, monotonic_seconds() + deadline)), deadline_(deadline) {}

void ByteReader::read(const std::string& name, int64_t offset, std::span<std::byte> into) {
  const std::lock_guard lock(mutex_);
  while (!into.empty()) {
    const std::span<std::byte> piece = into.first(std::min(into.size(), static_cast<size_t>(kPieceBytes)));
    const double until = monotonic_seconds() + deadline_;
    stream_.write({.kind = PacketKind::read, .number = offset, .key = name, .value = std::to_string(piece.size())},
                  until);
    const Packet answer = stream_.read(until);
    if (answer.kind != PacketKind::ok)
      fail(ErrorKind::comm, "{} does not give {}: {}", stream_.where(), name, answer.value);
    stream_.read_bytes(piece, until);
    into = into.subspan(piece.size());
    offset += static_cast<int64_t>(piece.size());
  }
}

}  // namespace megalith::comm
