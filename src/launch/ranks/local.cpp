#include "launch/ranks/local.h"

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

#include "comm/store/socket.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash/crypto.h"
#include "core/process/exit_codes.h"
#include "core/process/stop_signals.h"
#include "launch/ranks/boot.h"
#include "launch/ranks/rank_process.h"

namespace megalith::launch {

namespace {
constexpr double kForever = 1e18;
constexpr size_t kSecretBytes = 32;
constexpr int kEndedBySignal = 128;  // plus which, as shells say it
// For ranks that have not begun to train and that one failure ends: time to say why they cannot go on either.
constexpr double kGraceBeforeTraining = 5.0;

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
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      const bool is_ignored = kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN;  // by nohup
      if (!is_ignored) ::sigaction(kSignals[i], &action, nullptr);
    }
    // Nobody but the ranks saves or says how they end, when this has given them back.
    stop_signals::hold();
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
  static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD};

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
  explicit LocalRanks(const LocalLaunch& launch) : launch_(launch), live_(launch.output) {
    const int port = launch.master_port != 0 ? launch.master_port : comm::listen_on("127.0.0.1", 0).local_port();
    const std::string secret = launch.secret.empty() && is_alone() ? random_bytes(kSecretBytes) : launch.secret;
    for (int local = 0; local < launch.ranks; ++local) {
      ranks_.emplace_back(RankProcess::Options{.rank = launch.first_rank + local,
                                               .command = &launch.command,
                                               .environment = environment_of(local, port),
                                               .secret = secret,
                                               .output = launch.output,
                                               .errors = launch.errors,
                                               .live = on_terminal() ? &live_ : nullptr});
    }
  }

  int run() {
    while (std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.running(); })) {
      wait_for_events();
      for (RankProcess& rank : ranks_) hear(rank);
      for (const int signal : signals_.take()) {
        if (signal != SIGCHLD) heed(signal);
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
  int world() const { return launch_.world > 0 ? launch_.world : launch_.ranks; }
  bool is_alone() const { return world() == launch_.ranks; }

  std::vector<std::string> environment_of(int local, int port) const {
    const int rank = launch_.first_rank + local;
    std::vector<std::string> variables = {fmt::format("RANK={}", rank),
                                          fmt::format("LOCAL_RANK={}", local),
                                          fmt::format("WORLD_SIZE={}", world()),
                                          fmt::format("LOCAL_WORLD_SIZE={}", launch_.ranks),
                                          fmt::format("MASTER_ADDR={}", launch_.master_address),
                                          fmt::format("MASTER_PORT={}", port)};
    // Its lines come through a pipe, but the one of its progress can be drawn again.
    if (rank == 0 && on_terminal()) variables.push_back(fmt::format("MEGALITH_TERMINAL={}", terminal_path()));
    // The port is free, whatever a torchrun around us listens at.
    variables.emplace_back("TORCHELASTIC_USE_AGENT_STORE=");
    variables.emplace_back("MEGALITH_STORE_SECRET=");  // a rank finds it on its line
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
      watched.push_back({rank.line()->is_over() ? -1 : rank.line()->descriptor(), POLLIN, 0});
    }
    const double left = std::clamp(kill_at_ - monotonic_seconds(), 0.0, 60.0);
    ::poll(watched.data(), watched.size(), static_cast<int>(std::ceil(left * 1e3)));
  }

  void hear(RankProcess& rank) {
    while (const std::optional<char> word = rank.line()->receive()) {
      if (*word == LauncherLine::kRankIsRunning) {
        is_training_ = true;
      } else {
        ask_to_stop(*word);
      }
    }
  }

  void heed(int signal) {
    if (!launch_.ranks_save) return send_all(signal);
    const double now = monotonic_seconds();
    if (signal == SIGINT && now > first_interrupt_ + kSecondInterruptSeconds) {
      tell_user(StopNotice::quitting, signal);
      return end_with(kEndedBySignal + signal);
    }
    if (signal == SIGINT && first_interrupt_ == kForever) {
      first_interrupt_ = now;
      if (asked_ != 0 && asked_ != SIGINT) tell_user(StopNotice::stopping, signal);
    }
    ask_to_stop(signal);
  }

  void ask_to_stop(int signal) {
    if (asked_ != 0 || failed_ != nullptr) return;
    asked_ = signal;
    tell_user(is_training_ ? StopNotice::stopping : StopNotice::before_first_step, signal);
    if (!is_training_) return end_with(kExitStoppedEarly);
    for (RankProcess& rank : ranks_) rank.line()->send(static_cast<char>(signal));
  }

  void tell_user(StopNotice notice, int signal) const {
    std::fflush(launch_.output);
    std::fflush(launch_.errors);
    write_stop_notice(::fileno(launch_.errors), notice, signal);
  }

  // Whatever the ranks answer from here on.
  void end_with(int code) {
    verdict_ = code;
    send_all(SIGKILL);
  }

  void attend(RankProcess& rank) {
    const bool ended = rank.reap();
    rank.output().pump();
    rank.errors().pump();
    if (!ended || failed_ != nullptr || verdict_ || !failure(*rank.ending())) return;
    // It had no handler yet.
    const bool is_stop = launch_.ranks_save && !is_training_ && *stop_signal_name(rank.ending()->signal) != '\0';
    if (is_stop) return ask_to_stop(rank.ending()->signal);
    failed_ = &rank;
    if (rank.ending()->exit_code != kExitWrongInput) {
      live_.print(launch_.errors,
                  fmt::format("rank {} {}; ending the other ranks", rank.rank(), rank.ending()->describe()));
    }
    send_all(SIGTERM);
    const bool has_begun = is_training_ || !launch_.ranks_save;
    kill_at_ = monotonic_seconds() + (has_begun ? launch_.grace : std::min(launch_.grace, kGraceBeforeTraining));
  }

  bool on_terminal() const { return ::isatty(::fileno(launch_.output)) != 0; }

  // A process of another group may not write there, but ask for its width.
  std::string terminal_path() const {
    const char* path = ::ttyname(::fileno(launch_.output));
    return path != nullptr ? path : "/dev/tty";
  }

  static bool failure(const Ending& ending) {
    return ending.exit_code != kExitComplete && ending.exit_code != kExitStoppedEarly;
  }

  void send_all(int signal) const {
    for (const RankProcess& rank : ranks_) rank.send(signal);
  }

  // Who lost another rank may be through before that one has said why it failed.
  const Ending& cause() const {
    const auto knows = [](const RankProcess& rank) {
      const Ending& ending = *rank.ending();
      return failure(ending) && ending.signal == 0 && ending.exit_code != kExitRankLost;
    };
    const bool is_consequence = failed_->ending()->exit_code == kExitRankLost;
    const auto found = is_consequence ? std::find_if(ranks_.begin(), ranks_.end(), knows) : ranks_.end();
    return found == ranks_.end() ? *failed_->ending() : *found->ending();
  }

  int exit_code() const {
    if (verdict_) return *verdict_;
    if (failed_ != nullptr) return cause().exit_code;
    const bool complete = std::all_of(ranks_.begin(), ranks_.end(),
                                      [](const auto& rank) { return rank.ending()->exit_code == kExitComplete; });
    return complete ? kExitComplete : kExitStoppedEarly;
  }

  const LocalLaunch& launch_;
  LiveLine live_;
  SignalReader signals_;
  std::list<RankProcess> ranks_;
  const RankProcess* failed_ = nullptr;  // the first
  double kill_at_ = kForever;
  bool is_training_ = false;  // a rank has said so
  int asked_ = 0;             // the signal for which the ranks were asked to stop
  double first_interrupt_ = kForever;
  std::optional<int> verdict_;
};

// Here, where one process says it once, rather than by ranks that meet a stranger at the port.
void check_port(const LocalLaunch& launch) {
  try {
    comm::listen_on(listening_address(launch.master_address), static_cast<uint16_t>(launch.master_port));
  } catch (const Error& error) {
    user_error("rank 0 cannot serve the store of the run: {}; choose another MASTER_PORT", error.what());
  }
}

void check(const LocalLaunch& launch) {
  if (launch.ranks < 1) user_error("{} ranks cannot be started", launch.ranks);
  if (launch.command.empty()) user_error("no command to start ranks with");
  if (::access(launch.command.front().c_str(), X_OK) != 0) {
    user_error("'{}' cannot be run: {}", launch.command.front(), std::strerror(errno));
  }
  if (launch.master_port != 0 && launch.first_rank == 0) check_port(launch);
}
}  // namespace

int launch_local(const LocalLaunch& launch) {
  check(launch);
  return LocalRanks(launch).run();
}

}  // namespace megalith::launch
