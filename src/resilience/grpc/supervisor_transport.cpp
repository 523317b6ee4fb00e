#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>

#include "control.grpc.pb.h"
#include "core/clock.h"
#include "core/error.h"
#include "resilience/control_socket.h"
#include "resilience/grpc/wire.h"
#include "resilience/unix_transport.h"

namespace megalith::resilience {

namespace {
constexpr double kHelloSeconds = 5.0;
constexpr size_t kMostQueued = 16;  // messages of one session, in either direction
constexpr size_t kMemoryBytes = size_t{256} << 20;

class Session;

// What the threads of gRPC and the supervisor's share.
struct Hub {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<Session*> sessions;
  std::deque<Session*> arrivals;  // one for each report that waits in its session
  int64_t refused = 0;
};

// One stream of one monitor. The threads of gRPC only note what has come; the supervisor's thread alone reads on, and
// finishes, so that a session is never gone while that thread holds it.
class Session final : public grpc::ServerBidiReactor<control::Report, control::Order> {
 public:
  Session(Hub& hub, grpc::CallbackServerContext& context) : hub_(hub), context_(context), since_(monotonic_seconds()) {
    const std::lock_guard lock(hub_.mutex);
    hub_.sessions.push_back(this);
  }

  void read_on() { StartRead(&incoming_); }

  void OnReadDone(bool is_good) override {
    const std::lock_guard lock(hub_.mutex);
    is_reading_ = false;
    if (is_good) {
      std::optional<Report> report = report_of(incoming_);
      if (report) {
        waiting_ = std::move(report);
        hub_.arrivals.push_back(this);
      } else {
        ++hub_.refused;
        is_over_ = true;
      }
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
  void set_node(const std::string& node) { node_ = node; }
  bool is_over() const { return is_over_; }
  bool is_late_to_say_hello() const { return node_.empty() && monotonic_seconds() - since_ > kHelloSeconds; }
  // Nothing more is sent to it or read from it.
  void give_up() {
    is_over_ = true;
    context_.TryCancel();
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
    write_to(order, queue_.emplace_back());
    if (is_writing_) return false;
    is_writing_ = true;
    return true;
  }
  void write_on() { StartWrite(&queue_.front()); }

 private:
  Hub& hub_;
  grpc::CallbackServerContext& context_;
  double since_;
  control::Report incoming_;
  std::optional<Report> waiting_;
  std::deque<control::Order> queue_;  // the first is being written; a deque leaves it where it is
  std::string node_;                  // whose it is, once it has said so
  bool is_reading_ = true;
  bool is_writing_ = false;
  bool is_over_ = false;
  bool is_finished_ = false;
};

class Service final : public control::Control::CallbackService {
 public:
  explicit Service(Hub& hub) : hub_(hub) {}

  grpc::ServerBidiReactor<control::Report, control::Order>* Session(grpc::CallbackServerContext* context) override {
    auto* const session = new resilience::Session(hub_, *context);  // deletes itself when it is done
    session->read_on();
    return session;
  }

 private:
  Hub& hub_;
};

class GrpcSupervisorTransport final : public UnixSupervisorTransport {
 public:
  explicit GrpcSupervisorTransport(const std::filesystem::path& path) : socket_(path), service_(hub_) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMostMessageBytes);
    builder.SetMaxSendMessageSize(kMostMessageBytes);
    builder.SetResourceQuota(grpc::ResourceQuota("control").Resize(kMemoryBytes));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) fail(ErrorKind::io, "gRPC cannot serve {}", path.string());
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
    return hub_.refused + socket_.refused();
  }

 private:
  void welcome_connections() {
    for (int connection = socket_.accept(); connection >= 0; connection = socket_.accept())
      grpc::AddInsecureChannelFromFd(server_.get(), connection);
  }

  // A stream is one node's from its first report on, and a node's newest stream takes the place of the one before.
  bool accept_name(Session& session, const Report& report) {
    const std::string& name = report.header.sender;
    if (name.empty() || (!session.node().empty() && session.node() != name)) {
      ++hub_.refused;
      session.give_up();
      return false;
    }
    if (session.node().empty()) {
      session.set_node(name);
      Session*& current = of_node_[name];
      if (current != nullptr) current->give_up();
      current = &session;
    }
    return true;
  }

  void tend_sessions(std::unique_lock<std::mutex>& lock) {
    for (Session* const session : hub_.sessions) {
      if (session->is_late_to_say_hello() && !session->is_over()) {
        ++hub_.refused;
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
    for (Session* const session : finished) session->Finish(grpc::Status::OK);
    lock.lock();
  }

  mutable Hub hub_;
  ControlSocket socket_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::map<std::string, Session*> of_node_;
  std::deque<std::string> broken_;
};
}  // namespace

UnixSupervisorTransport* megalith_listen_for_monitors(const std::filesystem::path& socket) {
  return new GrpcSupervisorTransport(socket);
}

}  // namespace megalith::resilience
