#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <list>
#include <thread>

#include "comm/keyed_hash.h"
#include "comm/packet.h"
#include "comm/store.h"
#include "comm/store_proof.h"
#include "comm/store_table.h"
#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

namespace {
constexpr size_t kMaxClients = 20'000;
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

  void advance(int64_t generation) {
    generation_ = generation;
    wake();
  }

 private:
  void serve() {
    while (!stopping_) {
      wait_for_events();
      begin_new_generation();
      accept_clients();
      for (Client& client : clients_) {
        if (!attend(client)) client.socket = Socket();
      }
      std::erase_if(clients_, [](const Client& client) { return !client.socket; });
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

  void begin_new_generation() {
    if (generation_ == served_) return;
    served_ = generation_;
    table_.clear();
    clients_.clear();
  }

  void accept_clients() {
    while (Socket socket = accept_from(listener_)) {
      if (clients_.size() >= kMaxClients) return;
      Client& client = clients_.emplace_back();
      client.socket = std::move(socket);
      client.hello_until = monotonic_seconds() + hello_deadline_;
      client.introduction.server_nonce = random_bytes(kNonceBytes);
      client.answer({.kind = PacketKind::challenge, .value = client.introduction.server_nonce});
    }
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
    if (hello.kind == PacketKind::hello && proven && hello.number == served_) {
      client.known = true;
      client.answer({.kind = PacketKind::ok, .value = server_proof(secret_, client.introduction)});
    } else {
      client.leaving = true;
      client.answer({.kind = PacketKind::refused, .value = why_refused(hello, served_, proven)});
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
  std::atomic<int64_t> generation_;
  int64_t served_ = generation_;
  Socket listener_;
  Socket wake_;
  std::list<Client> clients_;
  StoreTable table_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

StoreServer::StoreServer(const StoreServerOptions& options) : loop_(std::make_unique<Loop>(options)) {}

StoreServer::~StoreServer() = default;

uint16_t StoreServer::port() const {
  return loop_->port();
}

void StoreServer::advance(int64_t generation) {
  loop_->advance(generation);
}

}  // namespace megalith::comm
