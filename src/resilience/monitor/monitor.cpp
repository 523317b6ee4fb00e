#include "resilience/monitor/monitor.h"

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

#include "comm/store/socket.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/exit_codes.h"
#include "core/process/file_lock.h"
#include "core/process/stop_signals.h"
#include "observe/sinks/event_text.h"
#include "observe/sinks/log_files.h"
#include "resilience/monitor/anchor.h"
#include "resilience/monitor/node.h"
#include "resilience/record/run_name.h"
#include "resilience/unix_transport.h"

namespace megalith::resilience {

namespace {
constexpr double kLookSeconds = 0.1;
constexpr double kReportSeconds = 1.0;
constexpr double kLateSeconds = 1.0;  // a loop that comes later than this was held up
constexpr double kNoSupervisorSeconds = 5.0;
constexpr double kFarewellSeconds = 0.5;  // for the last report to leave

// Since the machine started, also while it sleeps.
int64_t boot_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

double boot_seconds() {
  return static_cast<double>(boot_nanoseconds()) * 1e-9;
}

// A run has its name once a supervisor has given it one.
std::string wait_for_run(const MonitorOptions& options) {
  for (bool is_told = false;; is_told = true) {
    if (const std::optional<std::string> run = run_name(options.run_directory)) return *run;
    if (!is_told) observe::log_info(fmt::format("waiting for a supervisor of {}", options.run_directory.string()));
    std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
    if (const int signal = stop_signals::next_awaited(); signal != 0) {
      fail(ErrorKind::user, "{} before a supervisor has begun the run in {}", stop_signal_name(signal),
           options.run_directory.string());
    }
  }
}

std::vector<Door> doors_of(const MonitorOptions& options) {
  std::vector<Door> doors;
  if (!options.socket.empty()) doors.emplace_back().socket = options.socket;
  for (const Endpoint& endpoint : options.supervisors) {
    doors.emplace_back().endpoint = endpoint;
    doors.back().credentials = options.credentials;
  }
  return doors;
}

class Monitor {
 public:
  Monitor(const MonitorOptions& options, const std::string& run)
      : options_(options),
        node_({.run_directory = options.run_directory,
               .run = run,
               .node = options.node,
               .address = options.address,
               .folders = options.folders,
               .failpoints = options.failpoints}),
        logic_({.run = run,
                .node = options.node,
                .address = options.address,
                .boot_id = observe::boot_id(),
                .session = boot_nanoseconds()},
               node_),
        transport_(dial_supervisors(doors_of(options), options.node)) {}

  int run() {
    double last = boot_seconds();
    while (!logic_.exit_code() && !ends_alone_) {
      transport_->wait(kLookSeconds);
      const double now = boot_seconds();
      const double late = now - last > kLateSeconds ? now - last : 0.0;
      last = now;
      if (late > 0.0) logic_.overslept(late);
      look(late);
    }
    const int code = static_cast<int>(logic_.exit_code().value_or(kExitStoppedEarly));
    node_.clear(code == 0);
    transport_->send(logic_.report());
    std::this_thread::sleep_for(std::chrono::duration<double>(kFarewellSeconds));
    observe::log_info(fmt::format("done, with exit code {}", code));
    return code;
  }

 private:
  // Once for each version: the supervisor will speak again.
  void tell_of_other_protocol(int64_t version) {
    if (speaks_our_protocol(version) || std::exchange(other_protocol_, version) == version) return;
    observe::log_warning(fmt::format(
        "a supervisor is refused: it speaks protocol {}, this monitor {}; run the same version of megalith on both",
        protocol_name(version), protocol_name(kProtocol)));
  }

  void look(double late) {
    if (const int signal = stop_signals::next_awaited(); signal != 0) heed(signal);
    bool at_once = node_.watch(late);
    while (const std::optional<Order> order = transport_->receive()) {
      tell_of_other_protocol(order->header.protocol);
      const bool is_repeated = std::exchange(heard_, order->header.sequence) == order->header.sequence;
      if (!is_repeated && order->kind != OrderKind::greet && order->kind != OrderKind::inspect) {
        observe::log_info(fmt::format("order {} of term {}: {}, generation {} {}", order->header.sequence,
                                      order->header.term, name_of(order->kind), order->header.generation,
                                      order->reason));
      }
      logic_.take(*order);
    }
    at_once = logic_.poll() || at_once;
    const double now = monotonic_seconds();
    if (at_once || now >= report_at_) {
      transport_->send(logic_.report());
      report_at_ = now + kReportSeconds;
    }
    while (const std::optional<std::string> alarm = transport_->next_alarm()) observe::log_warning(*alarm);
    end_if_refused();
    if (is_stopping_) stop_alone();
  }

  // While ranks train here, credentials are mended under way.
  void end_if_refused() {
    const std::string refusal = transport_->refusal();
    if (!refusal.empty() && node_.processes(false).empty())
      user_error("a supervisor refuses node '{}': {}", options_.node, refusal);
  }

  void heed(int signal) {
    if (!is_stopping_) observe::log_info(fmt::format("{}: asking for a stop", stop_signal_name(signal)));
    is_stopping_ = true;
    logic_.request_stop(options_.stop_grace);
  }

  // Nobody is there to order it, and the machine goes anyway.
  void stop_alone() {
    if (transport_->silent_seconds() < kNoSupervisorSeconds) return;
    const std::optional<Roster> roster = newest_roster();
    if (roster) node_.ask_to_stop(roster->generation);
    ends_alone_ = node_.all_done_or_stopped().value_or(false);
  }

  std::optional<Roster> newest_roster() const {
    try {
      return node_.newest_roster();
    } catch (const Error&) {
      return std::nullopt;  // the run directory is gone: the ranks find out when they save
    }
  }

  const MonitorOptions& options_;
  Node node_;
  MonitorLogic logic_;
  std::unique_ptr<UnixMonitorTransport> transport_;
  double report_at_ = 0.0;
  int64_t heard_ = 0;                   // sequence number of the last order
  int64_t other_protocol_ = kProtocol;  // the last one that was refused
  bool is_stopping_ = false;
  bool ends_alone_ = false;
};
}  // namespace

int run_monitor(const MonitorOptions& options) {
  stop_signals::await_in_this_thread();
  comm::ignore_broken_pipes();
  require_control_plane();
  options.folders.make();
  const File held = File::open_for_appending(options.folders.worker_lock());
  if (try_lock(held) == LockResult::busy) return exit_code(ErrorKind::internal);
  write_record(options.folders.worker(), options.node, own_process());
  const int code = Monitor(options, wait_for_run(options)).run();
  write_verdict(options.folders, code);
  return code;
}

}  // namespace megalith::resilience
