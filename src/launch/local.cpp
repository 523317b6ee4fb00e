#include "launch/local.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <list>

#include "comm/socket.h"
#include "core/clock.h"
#include "core/error.h"
#include "launch/rank_process.h"

namespace megalith::launch {

namespace {
constexpr int kStoppedEarly = 75;
constexpr double kForever = 1e18;

// While it lives, signals for this process come out of a pipe instead of interrupting it. A handler puts them in,
// whichever thread the kernel gives them to: libraries start threads of their own, which nobody has told to block any.
class SignalReader {
 public:
  SignalReader() {
    if (::pipe2(pipe_.data(), O_NONBLOCK | O_CLOEXEC) != 0) io_error_errno("making a pipe for signals");
    in_ = pipe_[1];
    struct sigaction action {};
    action.sa_handler = put;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~SignalReader() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
    in_ = -1;
    for (const int end : pipe_) ::close(end);
  }
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  int descriptor() const { return pipe_[0]; }
  std::vector<int> take() const {
    std::vector<int> signals;
    char signal = 0;
    while (::read(pipe_[0], &signal, 1) == 1) signals.push_back(signal);
    return signals;
  }

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD};

  static void put(int signal) {
    const int error = errno;
    const auto byte = static_cast<char>(signal);
    [[maybe_unused]] const ssize_t count = ::write(in_, &byte, 1);  // a full pipe wakes the reader as well
    errno = error;
  }

  static inline volatile sig_atomic_t in_ = -1;
  std::array<int, 2> pipe_{};
  std::array<struct sigaction, kSignals.size()> before_{};
};

class LocalRanks {
 public:
  explicit LocalRanks(const LocalLaunch& launch) : launch_(launch) {
    const int port = launch.master_port != 0 ? launch.master_port : comm::listen_on("127.0.0.1", 0).local_port();
    for (int local = 0; local < launch.ranks; ++local) {
      ranks_.emplace_back(RankProcess::Options{.rank = launch.first_rank + local,
                                               .command = &launch.command,
                                               .environment = environment_of(local, port),
                                               .output = launch.output,
                                               .errors = launch.errors});
    }
  }

  int run() {
    while (std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.running(); })) {
      wait_for_events();
      for (const int signal : signals_.take()) {
        if (signal != SIGCHLD) send_all(signal);
      }
      for (RankProcess& rank : ranks_) attend(rank);
      if (monotonic_seconds() >= kill_at_) {
        kill_at_ = kForever;
        send_all(SIGKILL);
      }
    }
    for (RankProcess& rank : ranks_) {
      rank.output().finish();
      rank.errors().finish();
    }
    return exit_code();
  }

 private:
  std::vector<std::string> environment_of(int local, int port) const {
    const int rank = launch_.first_rank + local;
    const int world = launch_.world > 0 ? launch_.world : launch_.ranks;
    std::vector<std::string> variables = {fmt::format("RANK={}", rank),
                                          fmt::format("LOCAL_RANK={}", local),
                                          fmt::format("WORLD_SIZE={}", world),
                                          fmt::format("LOCAL_WORLD_SIZE={}", launch_.ranks),
                                          fmt::format("MASTER_ADDR={}", launch_.master_address),
                                          fmt::format("MASTER_PORT={}", port)};
    // The port is free, whatever a torchrun around us listens at.
    variables.emplace_back("TORCHELASTIC_USE_AGENT_STORE=");
    if (launch_.ranks_share_gpus) {
      const std::string host = fmt::format("NCCL_HOSTID={}", rank);
      variables.insert(variables.end(), {host, "NCCL_SOCKET_IFNAME=lo", "NCCL_IB_DISABLE=1"});
    }
    return variables;
  }

  void wait_for_events() {
    std::vector<pollfd> watched = {{signals_.descriptor(), POLLIN, 0}};
    for (RankProcess& rank : ranks_) {
      watched.push_back({rank.output().pipe(), POLLIN, 0});  // poll passes over -1
      watched.push_back({rank.errors().pipe(), POLLIN, 0});
    }
    const double left = std::clamp(kill_at_ - monotonic_seconds(), 0.0, 60.0);
    ::poll(watched.data(), watched.size(), static_cast<int>(std::ceil(left * 1e3)));
  }

  void attend(RankProcess& rank) {
    const bool ended = rank.reap();
    rank.output().pump();
    rank.errors().pump();
    if (!ended || failed_ != nullptr || !failure(*rank.ending())) return;
    failed_ = &rank;
    fmt::print(launch_.errors, "rank {} {}; ending the other ranks\n", rank.rank(), rank.ending()->describe());
    std::fflush(launch_.errors);
    send_all(SIGTERM);
    kill_at_ = monotonic_seconds() + launch_.grace;
  }

  static bool failure(const Ending& ending) { return ending.exit_code != 0 && ending.exit_code != kStoppedEarly; }

  void send_all(int signal) const {
    for (const RankProcess& rank : ranks_) rank.send(signal);
  }

  int exit_code() const {
    if (failed_ != nullptr) return failed_->ending()->exit_code;
    const bool complete =
        std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.ending()->exit_code == 0; });
    return complete ? 0 : kStoppedEarly;
  }

  const LocalLaunch& launch_;
  SignalReader signals_;
  std::list<RankProcess> ranks_;
  const RankProcess* failed_ = nullptr;  // the first
  double kill_at_ = kForever;
};

void check(const LocalLaunch& launch) {
  if (launch.ranks < 1) user_error("{} ranks cannot be started", launch.ranks);
  if (launch.command.empty()) user_error("no command to start ranks with");
  if (::access(launch.command.front().c_str(), X_OK) != 0) {
    user_error("'{}' cannot be run: {}", launch.command.front(), std::strerror(errno));
  }
}
}  // namespace

int launch_local(const LocalLaunch& launch) {
  check(launch);
  return LocalRanks(launch).run();
}

}  // namespace megalith::launch
