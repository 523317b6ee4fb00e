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
#include "resilience/control_socket.h"
#include "resilience/grpc/wire.h"
#include "resilience/unix_transport.h"

namespace megalith::resilience {

namespace {
constexpr double kSilenceSeconds = 5.0;
constexpr double kDialSeconds = 0.5;  // between attempts
constexpr size_t kMostOrders = 64;    // that wait, further ones are lost
constexpr size_t kMostReports = 8;

struct Inbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Order> orders;
  double last_heard = monotonic_seconds();
};

// One stream to a supervisor. Whoever owns it destroys it once is_done(), never on a thread of gRPC: the process's last
// channel ends those threads, and one that waits for itself goes on with what was freed.
class Dial final : public grpc::ClientBidiReactor<control::Report, control::Order> {
 public:
  Dial(std::shared_ptr<Inbox> inbox, int connection)
      : inbox_(std::move(inbox)),
        channel_(grpc::CreateInsecureChannelFromFd("supervisor", connection)),
        stub_(control::Control::NewStub(channel_)) {}

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
      inbox_->last_heard = monotonic_seconds();
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

  void OnDone(const grpc::Status& /*status*/) override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    const std::shared_ptr<Inbox> inbox = inbox_;  // outlives this, which may be gone as soon as it is unlocked
    const std::lock_guard lock(inbox->mutex);
    is_done_ = true;
    inbox->changed.notify_all();
  }

  // With the inbox locked: gRPC is done with it.
  bool is_done() const { return is_done_; }

 private:
  std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<control::Control::Stub> stub_;
  grpc::ClientContext context_;
  control::Order incoming_;
  control::Report outgoing_;
  bool is_done_ = false;  // the inbox's mutex guards it
  mutable std::mutex mutex_;
  std::deque<Report> queue_;
  bool is_writing_ = false;
  bool is_over_ = false;
  bool is_released_ = false;
};

class GrpcMonitorTransport final : public UnixMonitorTransport {
 public:
  explicit GrpcMonitorTransport(std::filesystem::path path) : path_(std::move(path)) {}

  ~GrpcMonitorTransport() override {
    hang_up();
    std::unique_lock lock(inbox_->mutex);
    inbox_->changed.wait(lock, [this] { return std::ranges::all_of(ending_, &Dial::is_done); });
  }

  void send(const Report& report) override {
    tend_dial();
    if (dial_) dial_->send(report);
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

 private:
  void tend_dial() {
    const double now = monotonic_seconds();
    const bool is_silent = dial_ && now - dialled_ > kSilenceSeconds && silent_seconds() > kSilenceSeconds;
    if (dial_ && (dial_->is_over() || is_silent)) hang_up();
    forget_ended();
    if (dial_ || now - dialled_ < kDialSeconds) return;
    dialled_ = now;
    const int connection = connect_to_control_socket(path_);
    if (connection < 0) return;
    dial_ = std::make_unique<Dial>(inbox_, connection);
    dial_->begin();
  }

  void hang_up() {
    if (!dial_) return;
    dial_->give_up();
    ending_.push_back(std::move(dial_));
  }

  void forget_ended() {
    std::vector<std::unique_ptr<Dial>> ended;  // destroyed with the inbox unlocked: a channel waits for gRPC's threads
    const std::lock_guard lock(inbox_->mutex);
    for (std::unique_ptr<Dial>& dial : ending_) {
      if (dial->is_done()) ended.push_back(std::move(dial));
    }
    std::erase(ending_, nullptr);
  }

  std::filesystem::path path_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<Dial> dial_;
  std::vector<std::unique_ptr<Dial>> ending_;  // given up, and not yet done
  double dialled_ = -1e18;
};
}  // namespace

UnixMonitorTransport* megalith_dial_supervisor(const std::filesystem::path& socket) {
  return new GrpcMonitorTransport(socket);
}

}  // namespace megalith::resilience
