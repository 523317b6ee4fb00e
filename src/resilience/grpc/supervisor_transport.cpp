#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>

#include "config/fleet_environment.h"
#include "control.grpc.pb.h"
#include "core/clock.h"
#include "core/error.h"
#include "resilience/alarms.h"
#include "resilience/control_socket.h"
#include "resilience/grpc/wire.h"
#include "resilience/secure/tls_server.h"
#include "resilience/unix_transport.h"

namespace megalith::resilience {

namespace {
constexpr double kHelloSeconds = 5.0;
constexpr size_t kMostQueued = 16;  // messages of one session, in either direction
constexpr size_t kMemoryBytes = size_t{256} << 20;
constexpr int kGrpcsMostBytes = 1 << 20;  // what is longer breaks its stream, and nobody knows why
constexpr size_t kMostNames = 4096;       // that are given to certificates without one
constexpr int kMostStreams = 1;           // of a connection

class Session;

// What the threads of gRPC and the supervisor's share.
struct Hub {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<Session*> sessions;
  std::deque<Session*> arrivals;  // one for each report that waits in its session
  int64_t refused = 0;
  Alarms alarms;
};

// Messages come and go as bytes, so that one that is none can be told from the end of a stream.
using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

std::string bytes_in(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// Who opened a stream, where that was over TCP.
using Peer = TlsServer::Peer;

// One stream of one monitor. The threads of gRPC only note what has come; the supervisor's thread alone reads on, and
// finishes, so that a session is never gone while that thread holds it.
class Session final : public Reactor {
 public:
  Session(Hub& hub, grpc::CallbackServerContext& context, TlsServer* door, std::optional<Peer> peer)
      : hub_(hub), context_(context), door_(door), peer_(std::move(peer)), since_(monotonic_seconds()) {
    const std::lock_guard lock(hub_.mutex);
    hub_.sessions.push_back(this);
  }

  void read_on() { StartRead(&incoming_); }

  void OnReadDone(bool is_good) override {
    const std::lock_guard lock(hub_.mutex);
    is_reading_ = false;
    if (is_good) {
      const size_t size = incoming_.Length();
      if (size > kMostMessageBytes) {
        refuse(fmt::format("a message of {} bytes is too long", size));
      } else if (std::optional<Report> report = report_of(bytes_in(incoming_))) {
        waiting_ = std::move(report);
        hub_.arrivals.push_back(this);
      } else {
        refuse("a message is damaged, or has words that nobody knows");
      }
      incoming_.Clear();
    } else {
      is_over_ = true;
    }
    hub_.changed.notify_all();
  }

  void OnWriteDone(bool is_good) override {
    {
      const std::lock_guard lock(hub_.mutex);
      queue_.pop_front();
      is_over_ = is_over_ || !is_good;
      is_writing_ = !queue_.empty() && !is_over_;
      hub_.changed.notify_all();
      if (!is_writing_) return;
    }
    StartWrite(&queue_.front());
  }

  void OnDone() override {
    if (door_ != nullptr && peer_) door_->release(peer_->number);
    {
      const std::lock_guard lock(hub_.mutex);
      hub_.sessions.remove(this);
      hub_.changed.notify_all();
    }
    delete this;
  }

  // What follows is for the supervisor's thread, with the hub locked.
  std::optional<Report> take() { return std::exchange(waiting_, std::nullopt); }
  const std::string& node() const { return node_; }
  const std::optional<Peer>& peer() const { return peer_; }
  const grpc::Status& status() const { return status_; }
  void set_node(const std::string& node) { node_ = node; }
  bool is_over() const { return is_over_; }
  bool is_late_to_say_hello() const { return node_.empty() && monotonic_seconds() - since_ > kHelloSeconds; }
  // Nothing more is sent to it or read from it.
  void give_up() {
    is_over_ = true;
    context_.TryCancel();
  }
  // The same, and the other side and people here are told why.
  void refuse(const std::string& why) {
    ++hub_.refused;
    is_over_ = true;
    status_ = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, why);
    hub_.alarms.add(fmt::format("a stream{}{} was refused: {}", peer_ ? " from " + peer_->address : "",
                                node_.empty() ? "" : " of " + node_, why));
  }
  // True: the caller has to read_on(), with the hub unlocked.
  bool wants_to_read() {
    if (is_over_ || is_reading_ || waiting_) return false;
    is_reading_ = true;
    return true;
  }
  // True: the caller has to call Finish(), with the hub unlocked.
  bool can_finish() {
    if (!is_over_ || is_reading_ || is_writing_ || is_finished_) return false;
    is_finished_ = true;
    return true;
  }
  // True: the caller has to write_on(), with the hub unlocked.
  bool queue(const Order& order) {
    if (queue_.size() >= kMostQueued) {
      give_up();
      return false;
    }
    const grpc::Slice bytes(bytes_of(order));
    queue_.emplace_back(&bytes, 1);
    if (is_writing_) return false;
    is_writing_ = true;
    return true;
  }
  void write_on() { StartWrite(&queue_.front()); }

 private:
  Hub& hub_;
  grpc::CallbackServerContext& context_;
  TlsServer* door_;
  std::optional<Peer> peer_;
  grpc::Status status_;  // OK but where it was refused
  double since_;
  grpc::ByteBuffer incoming_;
  std::optional<Report> waiting_;
  std::deque<grpc::ByteBuffer> queue_;  // the first is being written; a deque leaves it where it is
  std::string node_;                    // whose it is, once it has said so
  bool is_reading_ = true;
  bool is_writing_ = false;
  bool is_over_ = false;
  bool is_finished_ = false;
};

// A stream that is over as it begins.
class Refusal final : public Reactor {
 public:
  explicit Refusal(const std::string& why) { Finish(grpc::Status(grpc::StatusCode::PERMISSION_DENIED, why)); }
  void OnDone() override { delete this; }
};

class Service final : public control::Control::WithRawCallbackMethod_Session<control::Control::Service> {
 public:
  // `door` is null where all connections are this user's own.
  Service(Hub& hub, TlsServer* door) : hub_(hub), door_(door) {}

  Reactor* Session(grpc::CallbackServerContext* context) override {
    std::optional<Peer> peer = door_ == nullptr ? std::nullopt : claim(*context);
    if (door_ != nullptr && !peer) return refusal("its connection is not known, or has a stream already");
    if (peer && peer->identity.role != Role::monitor) {
      door_->release(peer->number);
      return refusal(fmt::format("{} at {} reports for no node", words_of(peer->identity), peer->address));
    }
    // It deletes itself when it is done.
    auto* const session = new resilience::Session(hub_, *context, door_, std::move(peer));
    session->read_on();
    return session;
  }

 private:
  std::optional<Peer> claim(const grpc::CallbackServerContext& context) const {
    const auto found = context.client_metadata().find(kBindingKey);
    if (found == context.client_metadata().end()) return std::nullopt;
    return door_->claim(std::string(found->second.data(), found->second.size()));
  }

  Reactor* refusal(const std::string& why) {
    const std::lock_guard lock(hub_.mutex);
    ++hub_.refused;
    hub_.alarms.add(fmt::format("a stream was refused: {}", why));
    return new Refusal(why);
  }

  Hub& hub_;
  TlsServer* door_;
};

class GrpcSupervisorTransport final : public UnixSupervisorTransport {
 public:
  explicit GrpcSupervisorTransport(const Door& door)
      : socket_(door.socket.empty() ? nullptr : std::make_unique<ControlSocket>(door.socket)),
        tls_(door.socket.empty() ? std::make_unique<TlsServer>(door.endpoint, door.credentials) : nullptr),
        service_(hub_, tls_.get()) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kGrpcsMostBytes);
    builder.SetMaxSendMessageSize(kMostMessageBytes);
    builder.SetResourceQuota(grpc::ResourceQuota("control").Resize(kMemoryBytes));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) fail(ErrorKind::io, "gRPC cannot serve {}", door.text());
  }

  ~GrpcSupervisorTransport() override {
    std::unique_lock lock(hub_.mutex);
    for (Session* const session : hub_.sessions) session->give_up();
    while (!hub_.sessions.empty()) {
      finish_sessions(lock);
      if (!hub_.sessions.empty()) hub_.changed.wait_for(lock, std::chrono::milliseconds(10));
    }
    lock.unlock();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  bool send(const std::string& node, const Order& order) override {
    std::unique_lock lock(hub_.mutex);
    const auto found = of_node_.find(node);
    if (found == of_node_.end() || found->second->is_over()) return false;
    Session* const session = found->second;
    const bool must_write = session->queue(order);
    lock.unlock();
    if (must_write) session->write_on();
    return true;
  }

  std::optional<Report> receive() override {
    welcome_connections();
    std::unique_lock lock(hub_.mutex);
    tend_sessions(lock);
    while (!hub_.arrivals.empty()) {
      Session* const session = hub_.arrivals.front();
      hub_.arrivals.pop_front();
      std::optional<Report> report = session->take();
      if (!report || !accept_name(*session, *report)) continue;
      const bool must_read = session->wants_to_read();
      lock.unlock();
      if (must_read) session->read_on();
      return report;
    }
    finish_sessions(lock);
    return std::nullopt;
  }

  std::optional<std::string> next_broken() override {
    const std::lock_guard lock(hub_.mutex);
    if (broken_.empty()) return std::nullopt;
    std::string node = std::move(broken_.front());
    broken_.pop_front();
    return node;
  }

  void wait(double seconds) override {
    std::unique_lock lock(hub_.mutex);
    hub_.changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !hub_.arrivals.empty(); });
  }

  int64_t refused() const override {
    const std::lock_guard lock(hub_.mutex);
    return hub_.refused + (socket_ ? socket_->refused() : tls_->refused());
  }

  std::optional<std::string> next_alarm() override {
    std::optional<std::string> alarm = hub_.alarms.next();
    return alarm || !tls_ ? alarm : tls_->next_alarm();
  }

  uint16_t port() const override { return tls_ ? tls_->port() : uint16_t{0}; }

 private:
  void welcome_connections() {
    const auto next = [this] { return socket_ ? socket_->accept() : tls_->accept(); };
    for (int connection = next(); connection >= 0; connection = next())
      grpc::AddInsecureChannelFromFd(server_.get(), connection);
  }

  // A stream is one node's from its first report on, and a node's newest stream takes the place of the one before.
  bool accept_name(Session& session, const Report& report) {
    if (const std::string why = why_refused(session, report); !why.empty()) {
      session.refuse(why);
      return !speaks_our_protocol(report.header.protocol);  // whoever hears it names the node
    }
    if (session.node().empty()) {
      const std::string& name = report.header.sender;
      session.set_node(name);
      Session*& current = of_node_[name];
      if (current != nullptr) current->give_up();
      current = &session;
    }
    return true;
  }

  std::string why_refused(const Session& session, const Report& report) {
    const std::string& name = report.header.sender;
    if (!speaks_our_protocol(report.header.protocol)) {
      return fmt::format("it speaks protocol {}, this supervisor {}", protocol_name(report.header.protocol),
                         protocol_name(kProtocol));
    }
    if (!config::is_node_name(name)) return fmt::format("'{}' is no name of a node", name.substr(0, 64));
    if (!session.node().empty()) return session.node() == name ? "" : "it speaks as " + name;
    if (!session.peer()) return "";
    const Identity& peer = session.peer()->identity;
    if (!peer.node.empty() && peer.node != name)
      return fmt::format("its certificate is that of {}, and it speaks as {}", words_of(peer), name);
    return bind(name,
                {.address = session.peer()->address, .boot_id = report.boot_id, .is_certain = !peer.node.empty()});
  }

  // Where the node of that name is, from its first stream on. A certificate with its name says more than one for any.
  struct Owner {
    std::string address;
    std::string boot_id;
    bool is_certain = false;
  };
  std::string bind(const std::string& name, const Owner& owner) {
    const auto found = owners_.find(name);
    if (owner.is_certain || found == owners_.end()) {
      if (!owner.is_certain && owners_.size() >= kMostNames) return fmt::format("{} names are taken", kMostNames);
      owners_[name] = owner;
      return "";
    }
    const Owner& first = found->second;
    if (!first.is_certain && first.address == owner.address && first.boot_id == owner.boot_id) return "";
    return fmt::format("{} is the machine at {} already, and its certificate is for any node", name, first.address);
  }

  void tend_sessions(std::unique_lock<std::mutex>& lock) {
    for (Session* const session : hub_.sessions) {
      if (session->is_late_to_say_hello() && !session->is_over()) {
        session->refuse("it has said nothing in time");
        session->give_up();
      }
    }
    finish_sessions(lock);
  }

  void finish_sessions(std::unique_lock<std::mutex>& lock) {
    std::vector<Session*> finished;
    for (Session* const session : hub_.sessions) {
      if (session->can_finish()) finished.push_back(session);
    }
    for (Session* const session : finished) {
      std::erase(hub_.arrivals, session);
      const auto own = of_node_.find(session->node());
      if (own == of_node_.end() || own->second != session) continue;
      broken_.push_back(session->node());
      of_node_.erase(own);
    }
    lock.unlock();
    for (Session* const session : finished) session->Finish(session->status());
    lock.lock();
  }

  mutable Hub hub_;
  std::unique_ptr<ControlSocket> socket_;  // one of these
  std::unique_ptr<TlsServer> tls_;
  std::map<std::string, Owner> owners_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::map<std::string, Session*> of_node_;
  std::deque<std::string> broken_;
};
}  // namespace

UnixSupervisorTransport* megalith_listen_for_monitors(const Door& door) {
  return new GrpcSupervisorTransport(door);
}

}  // namespace megalith::resilience
