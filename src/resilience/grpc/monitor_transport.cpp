#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "control.grpc.pb.h"
#include "core/clock.h"
#include "resilience/alarms.h"
#include "resilience/control_socket.h"
#include "resilience/grpc/wire.h"
#include "resilience/secure/tls_dial.h"
#include "resilience/unix_transport.h"

namespace megalith::resilience {

namespace {
constexpr double kSilenceSeconds = 5.0;
constexpr double kDialSeconds = 0.5;     // between attempts
constexpr double kRefusedSeconds = 5.0;  // the same after one that was refused
constexpr size_t kMostOrders = 64;       // that wait, further ones are lost
constexpr size_t kMostReports = 8;

// What all supervisors say.
struct Inbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Order> orders;
  double last_heard = monotonic_seconds();
  bool has_heard = false;
};

// One stream to a supervisor. Whoever owns it destroys it once is_done(), never on a thread of gRPC: the process's last
// channel ends those threads, and one that waits for itself goes on with what was freed.
class Dial final : public grpc::ClientBidiReactor<control::Report, control::Order> {
 public:
  // `binding`: the name of the connection, where it is over TCP.
  Dial(std::shared_ptr<Inbox> inbox, int connection, const std::string& binding)
      : inbox_(std::move(inbox)),
        channel_(grpc::CreateInsecureChannelFromFd("supervisor", connection)),
        stub_(control::Control::NewStub(channel_)) {
    if (!binding.empty()) context_.AddMetadata(kBindingKey, binding);
  }

  void begin() {
    stub_->async()->Session(&context_, this);
    AddHold();  // reports leave from a thread that is not gRPC's
    StartRead(&incoming_);
    StartCall();
  }

  // Of too many reports that wait the oldest is left out.
  void send(const Report& report) {
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return;
      if (is_writing_) {
        if (queue_.size() == kMostReports) queue_.pop_front();
        queue_.push_back(report);
        return;
      }
      is_writing_ = true;
    }
    outgoing_.Clear();
    write_to(report, outgoing_);
    StartWrite(&outgoing_);
  }

  void give_up() {
    context_.TryCancel();
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      if (is_released_) return;
      is_released_ = true;
    }
    RemoveHold();
  }

  bool is_over() const {
    const std::lock_guard lock(mutex_);
    return is_over_;
  }

  void OnReadDone(bool is_good) override {
    if (!is_good) {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      return;
    }
    if (std::optional<Order> order = order_of(incoming_)) {
      const std::lock_guard lock(inbox_->mutex);
      inbox_->last_heard = last_heard_ = monotonic_seconds();
      inbox_->has_heard = true;
      if (inbox_->orders.size() < kMostOrders) inbox_->orders.push_back(*std::move(order));
      inbox_->changed.notify_all();
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool is_good) override {
    Report next;
    {
      const std::lock_guard lock(mutex_);
      is_over_ = is_over_ || !is_good;
      is_writing_ = !queue_.empty() && !is_over_;
      if (!is_writing_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    outgoing_.Clear();
    write_to(next, outgoing_);
    StartWrite(&outgoing_);
  }

  void OnDone(const grpc::Status& status) override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) refusal_ = status.error_message();
    const std::shared_ptr<Inbox> inbox = inbox_;  // outlives this, which may be gone as soon as it is unlocked
    const std::lock_guard lock(inbox->mutex);
    is_done_ = true;
    inbox->changed.notify_all();
  }

  // With the inbox locked: gRPC is done with it.
  bool is_done() const { return is_done_; }
  // With the inbox locked: since something came from it.
  double last_heard() const { return last_heard_; }
  // Once it is done: what the supervisor holds against it; empty: nothing.
  const std::string& refusal() const { return refusal_; }

 private:
  std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<control::Control::Stub> stub_;
  grpc::ClientContext context_;
  control::Order incoming_;
  control::Report outgoing_;
  bool is_done_ = false;  // the inbox's mutex guards it
  double last_heard_ = monotonic_seconds();
  std::string refusal_;
  mutable std::mutex mutex_;
  std::deque<Report> queue_;
  bool is_writing_ = false;
  bool is_over_ = false;
  bool is_released_ = false;
};

// The way to one supervisor: dialled anew for as long as it is there.
class Line {
 public:
  Line(Door door, std::string node, std::shared_ptr<Inbox> inbox)
      : door_(std::move(door)), node_(std::move(node)), inbox_(std::move(inbox)) {}

  ~Line() {
    hang_up();
    std::unique_lock lock(inbox_->mutex);
    inbox_->changed.wait(lock, [this] { return std::ranges::all_of(ending_, &Dial::is_done); });
  }

  void send(const Report& report, Alarms& alarms) {
    tend(alarms);
    if (dial_) dial_->send(report);
  }

  // The last attempt: why it was refused; empty: it was not, or is not over.
  const std::string& refusal() const { return refusal_; }

 private:
  void tend(Alarms& alarms) {
    const double now = monotonic_seconds();
    if (dial_ && (dial_->is_over() || is_silent(now))) hang_up();
    forget_ended(alarms);
    if (dial_) return;
    if (tls_ && tls_->state() == TlsDial::State::secure) return begin(tls_->take_local(), tls_->binding());
    if (tls_ && tls_->state() == TlsDial::State::connecting) return;
    if (tls_) take_end_of_tls(alarms);
    if (now - dialled_ < (refusal_.empty() ? kDialSeconds : kRefusedSeconds)) return;
    dialled_ = now;
    refusal_.clear();
    if (door_.socket.empty()) {
      tls_ = std::make_unique<TlsDial>(door_.endpoint, door_.credentials, node_);
    } else {
      begin(connect_to_control_socket(door_.socket), "");
    }
  }

  void begin(int connection, const std::string& binding) {
    if (connection < 0) return;
    dial_ = std::make_unique<Dial>(inbox_, connection, binding);
    dial_->begin();
  }

  bool is_silent(double now) const {
    const std::lock_guard lock(inbox_->mutex);
    return now - dial_->last_heard() > kSilenceSeconds;
  }

  // A connection that was secure may be refused even so: it is the other side that finds something wrong.
  void take_end_of_tls(Alarms& alarms) {
    if (tls_->is_refusal()) refuse(tls_->problem(), alarms);
    if (const std::string soon = tls_->alarm(); !soon.empty()) alarms.add(soon);
    tls_.reset();
  }

  void refuse(const std::string& why, Alarms& alarms) {
    refusal_ = why;
    alarms.add(fmt::format("supervisor at {}: no connection: {}", door_.text(), why));
  }

  void hang_up() {
    if (!dial_) return;
    dial_->give_up();
    ending_.push_back(std::move(dial_));
  }

  void forget_ended(Alarms& alarms) {
    std::vector<std::unique_ptr<Dial>> ended;  // destroyed with the inbox unlocked: a channel waits for gRPC's threads
    {
      const std::lock_guard lock(inbox_->mutex);
      for (std::unique_ptr<Dial>& dial : ending_) {
        if (dial->is_done()) ended.push_back(std::move(dial));
      }
      std::erase(ending_, nullptr);
    }
    for (const auto& dial : ended) {
      if (!dial->refusal().empty()) refuse(dial->refusal(), alarms);
    }
  }

  Door door_;
  std::string node_;
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<TlsDial> tls_;
  std::unique_ptr<Dial> dial_;
  std::vector<std::unique_ptr<Dial>> ending_;  // given up, and not yet done
  double dialled_ = -1e18;
  std::string refusal_;
};

class GrpcMonitorTransport final : public UnixMonitorTransport {
 public:
  GrpcMonitorTransport(const std::vector<Door>& doors, const std::string& node) {
    for (const Door& door : doors) lines_.push_back(std::make_unique<Line>(door, node, inbox_));
  }

  void send(const Report& report) override {
    for (const auto& line : lines_) line->send(report, alarms_);
  }

  std::optional<Order> receive() override {
    const std::lock_guard lock(inbox_->mutex);
    if (inbox_->orders.empty()) return std::nullopt;
    Order order = std::move(inbox_->orders.front());
    inbox_->orders.pop_front();
    return order;
  }

  void wait(double seconds) override {
    std::unique_lock lock(inbox_->mutex);
    inbox_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !inbox_->orders.empty(); });
  }

  double silent_seconds() const override {
    const std::lock_guard lock(inbox_->mutex);
    return monotonic_seconds() - inbox_->last_heard;
  }

  std::optional<std::string> next_alarm() override { return alarms_.next(); }

  std::string refusal() const override {
    {
      const std::lock_guard lock(inbox_->mutex);
      if (inbox_->has_heard) return "";
    }
    for (const auto& line : lines_) {
      if (!line->refusal().empty()) return line->refusal();
    }
    return "";
  }

 private:
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  Alarms alarms_;
  std::vector<std::unique_ptr<Line>> lines_;
};
}  // namespace

UnixMonitorTransport* megalith_dial_supervisors(const std::vector<Door>& doors, const std::string& node) {
  return new GrpcMonitorTransport(doors, node);
}

}  // namespace megalith::resilience
