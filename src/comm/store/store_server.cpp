#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <list>
#include <thread>
#include <vector>

#include "comm/store/packet.h"
#include "comm/store/store.h"
#include "comm/store/store_proof.h"
#include "comm/store/store_table.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash/crypto.h"

namespace megalith::comm {

namespace {
constexpr size_t kMaxClients = 20'000;
constexpr int kMostAcceptedAtOnce = 256;  // then those who are there already get their turn
constexpr double kForever = 1e18;

struct Client {
  Socket socket;
  Introduction introduction;
  bool known = false;
  bool leaving = false;  // as soon as everything is written
  bool readable = false;
  bool broken = false;
  double hello_until = 0.0;      // monotonic seconds
  std::optional<Packet> parked;  // a `get` whose key is not there yet
  double parked_until = kForever;
  std::string received;
  std::string to_send;

  size_t limit() const { return known ? kMaxPacketBytes : kMaxHelloBytes; }
  // One request at a time: what a client sends ahead stays in the kernel.
  bool listens() const { return !parked && to_send.empty() && !leaving; }
  bool late(double now) const { return !known && now > hello_until; }
  void answer(const Packet& packet) { to_send += encode(packet); }
};

std::string why_refused(const Packet& hello, int64_t generation, bool proven) {
  if (!proven) return fmt::format("rank {} does not know the secret of this run", hello.key);
  return fmt::format("rank {} is of generation {}, this run is at {}: it is left over from an earlier start", hello.key,
                     hello.number, generation);
}
}  // namespace

class StoreServer::Loop {
 public:
  explicit Loop(const StoreServerOptions& options)
      : secret_(options.secret),
        hello_deadline_(options.hello_deadline),
        most_strangers_(options.expected_clients + kStrangers),
        generation_(options.generation),
        listener_(listen_on(options.address, options.port)),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (secret_.empty() && !listener_.to_loopback()) {
      user_error("a store at {} can be reached from other machines and needs a shared secret", options.address);
    }
    if (!wake_) io_error_errno("making an eventfd");
    thread_ = std::thread([this] { serve(); });
  }

  ~Loop() {
    stopping_ = true;
    wake();
    thread_.join();
  }

  uint16_t port() const { return listener_.local_port(); }
  int clients() const { return known_clients_; }

 private:
  void serve() {
    while (!stopping_) {
      wait_for_events();
      accept_clients();
      for (Client& client : clients_) {
        if (!attend(client)) client.socket = Socket();
      }
      std::erase_if(clients_, [](const Client& client) { return !client.socket; });
      known_clients_ = static_cast<int>(
          std::count_if(clients_.begin(), clients_.end(), [](const Client& client) { return client.known; }));
    }
  }

  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof one);
  }

  void wait_for_events() {
    std::vector<pollfd> watched = {{wake_.descriptor(), POLLIN, 0}, {listener_.descriptor(), POLLIN, 0}};
    double next = kForever;
    for (const Client& client : clients_) {
      const short events = static_cast<short>((client.listens() ? POLLIN : 0) | (client.to_send.empty() ? 0 : POLLOUT));
      watched.push_back({client.socket.descriptor(), events, 0});
      next = std::min({next, client.known ? kForever : client.hello_until, client.parked_until});
    }
    const double left = std::clamp(next - monotonic_seconds(), 0.0, 60.0);
    ::poll(watched.data(), watched.size(), static_cast<int>(std::ceil(left * 1e3)));
    auto event = watched.begin() + 2;
    for (Client& client : clients_) {
      client.readable = (event->revents & POLLIN) != 0;
      client.broken = (event->revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
      ++event;
    }
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t read = ::read(wake_.descriptor(), &count, sizeof count);
  }

  void accept_clients() {
    for (int accepted = 0; accepted < kMostAcceptedAtOnce; ++accepted) {
      Socket socket = accept_from(listener_);
      if (!socket || clients_.size() >= kMaxClients) return;
      make_room_for_a_stranger();
      Client& client = clients_.emplace_back();
      client.socket = std::move(socket);
      client.hello_until = monotonic_seconds() + hello_deadline_;
      client.introduction.server_nonce = random_bytes(kNonceBytes);
      client.answer({.kind = PacketKind::challenge, .value = client.introduction.server_nonce});
    }
  }

  // New clients stand at the end of the list: the first that is unknown has been so for longest.
  void make_room_for_a_stranger() {
    const auto is_stranger = [](const Client& client) { return !client.known; };
    const auto strangers = std::count_if(clients_.begin(), clients_.end(), is_stranger);
    if (static_cast<size_t>(strangers) < most_strangers_) return;
    clients_.erase(std::find_if(clients_.begin(), clients_.end(), is_stranger));
  }

  // False when the client has to go.
  bool attend(Client& client) {
    try {
      if (client.broken || client.late(monotonic_seconds())) return false;
      if (client.readable && !client.socket.read_into(client.received, client.limit() + sizeof(uint32_t))) return false;
      if (client.parked) answer_parked(client);
      while (client.listens()) {
        const std::optional<Packet> packet = take_packet(client.received, client.limit());
        if (!packet) break;
        handle(client, *packet);
      }
      return client.socket.write_from(client.to_send) && !(client.leaving && client.to_send.empty());
    } catch (const Error&) {
      return false;
    }
  }

  void handle(Client& client, const Packet& packet) {
    if (!client.known) return welcome(client, packet);
    if (const auto answer = table_.apply(packet)) {
      client.answer(*answer);
      if (packet.kind != PacketKind::get) answer_who_waits_for(packet.key);
    } else {
      client.parked = packet;
      client.parked_until = monotonic_seconds() + static_cast<double>(packet.number) * 1e-3;
    }
  }

  void welcome(Client& client, const Packet& hello) {
    client.introduction.client_nonce = hello.expected;
    client.introduction.generation = hello.number;
    client.introduction.rank = hello.key;
    const bool proven = equal_in_constant_time(hello.value, client_proof(secret_, client.introduction));
    if (hello.kind == PacketKind::hello && proven && hello.number == generation_) {
      client.known = true;
      client.answer({.kind = PacketKind::ok, .value = server_proof(secret_, client.introduction)});
    } else {
      client.leaving = true;
      client.answer({.kind = PacketKind::refused, .value = why_refused(hello, generation_, proven)});
    }
  }

  void answer_who_waits_for(const std::string& key) {
    for (Client& client : clients_) {
      if (client.parked && client.parked->key == key) answer_parked(client);
    }
  }

  void answer_parked(Client& client) {
    std::optional<Packet> answer = table_.apply(*client.parked);
    if (!answer && monotonic_seconds() >= client.parked_until) answer = Packet{.kind = PacketKind::timed_out};
    if (!answer) return;
    client.answer(*answer);
    client.parked.reset();
    client.parked_until = kForever;
  }

  const std::string secret_;
  const double hello_deadline_;
  const size_t most_strangers_;
  const int64_t generation_;
  Socket listener_;
  Socket wake_;
  std::list<Client> clients_;
  StoreTable table_;
  std::atomic<int> known_clients_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

StoreServer::StoreServer(const StoreServerOptions& options) : loop_(std::make_unique<Loop>(options)) {}

StoreServer::~StoreServer() = default;

uint16_t StoreServer::port() const {
  return loop_->port();
}

int StoreServer::clients() const {
  return loop_->clients();
}

}  // namespace megalith::comm
