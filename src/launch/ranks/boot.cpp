#include "launch/ranks/boot.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "comm/store/rendezvous.h"
#include "config/variables.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/process/launcher_line.h"
#include "core/process/stop_signals.h"
#include "launch/ranks/numa.h"
#include "launch/ranks/secret.h"

namespace megalith::launch {

namespace {
constexpr double kAnswerSeconds = 60.0;
const char* const kMistake = "user's mistake";
// For others to hear the store's last words before the rank that serves it goes.
constexpr double kLeaveSeconds = 3.0;
// And to learn that a mistake of the user is why it goes: else they take it for lost and say so.
constexpr double kMistakeSeconds = 20.0;

config::RankEnvironment place_in(const config::Lookup& environment) {
  return config::rank_environment(environment).value_or(config::RankEnvironment{});
}

// By its text alone: many machines know their own name as a loopback address, other machines do not.
bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// That of this process, found at the first call; null where no launcher left one. Never destroyed: a signal may come
// until the process has ended.
LauncherLine* launcher_of(const config::Lookup& environment) {
  static LauncherLine* const line = [&]() -> LauncherLine* {
    constexpr int64_t kMaxDescriptor = std::numeric_limits<int>::max();
    const auto descriptor = config::Variables(environment).number(LauncherLine::kVariable, 0, kMaxDescriptor);
    return descriptor ? new LauncherLine(LauncherLine::inherit(static_cast<int>(*descriptor))) : nullptr;
  }();
  return line;
}

std::string secret_of(const config::RankEnvironment& place, const config::Lookup& environment) {
  const LauncherLine* launcher = launcher_of(environment);
  std::string secret = launcher != nullptr ? launcher->secret() : secret_of_run(environment);
  if (secret.empty() && !is_loopback(place.master_address)) {
    user_error(
        "the ranks meet at '{}', which other machines can reach: start them with `megalith launch`, or set "
        "MEGALITH_STORE_SECRET_FILE to a file of mode 0600 that all of them see, with one secret in it: "
        "(umask 077; openssl rand -hex 32 > secret)",
        place.master_address);
  }
  return secret;
}

std::unique_ptr<comm::StoreServer> serve_store(const comm::StoreServerOptions& options) {
  try {
    return std::make_unique<comm::StoreServer>(options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    user_error("rank 0 cannot serve the store of the run: {}; choose another MASTER_PORT", error.what());
  }
}

std::string arrival_key(const char* what, int rank) {
  return fmt::format("{}/{}", what, rank);
}

// The ranks that have not set their key `what` when the time is up.
std::vector<int> absent_from(comm::StoreClient& store, const char* what, int size, double seconds) {
  const double until = monotonic_seconds() + seconds;
  std::vector<int> absent;
  for (int rank = 0; rank < size; ++rank) {
    try {
      store.get(arrival_key(what, rank), std::max(0.0, until - monotonic_seconds()));
    } catch (const Error&) {
      absent.push_back(rank);
    }
  }
  return absent;
}
}  // namespace

int started_ranks(const config::Lookup& environment) {
  return place_in(environment).size;
}

std::string listening_address(const std::string& master_address) {
  if (is_loopback(master_address)) return master_address;
  return master_address.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

void take_stop_signals(const config::Lookup& environment) {
  LauncherLine* launcher = launcher_of(environment);
  stop_signals::take({.launcher = launcher, .speaks = launcher == nullptr && place_in(environment).rank == 0});
}

// The store, as one rank has it. Rank 0 serves it until the others have left.
class Boot::Meeting {
 public:
  Meeting(const config::RankEnvironment& place, const BootOptions& options) : place_(place) {
    const config::Variables variables(options.environment);
    const std::string secret = secret_of(place, options.environment);
    const int64_t generation = variables.count("MEGALITH_GENERATION").value_or(0);
    const auto port = static_cast<uint16_t>(place.master_port);
    if (place.rank == 0) {
      server_ = serve_store({.address = listening_address(place.master_address),
                             .port = port,
                             .generation = generation,
                             .secret = secret,
                             .expected_clients = static_cast<size_t>(place.size)});
    }
    try {
      client_ = std::make_unique<comm::StoreClient>(
          comm::StoreClientOptions{.host = place.master_address,
                                   .port = port,
                                   .generation = generation,
                                   .rank = place.rank,
                                   .secret = secret,
                                   .connect_deadline = options.start_timeout,
                                   .answer_deadline = std::min(kAnswerSeconds, options.communication_timeout)});
    } catch (const Error& error) {
      fail(error.kind(), "rank {} of {} could not meet rank 0: {} (start timeout {:.1f} s)", place.rank, place.size,
           error.what(), options.start_timeout);
    }
  }

  ~Meeting() {
    try {
      client_->set(arrival_key("left", place_.rank), "");
      if (server_) absent_from(*client_, "left", place_.size, leave_seconds_);
    } catch (const std::exception&) {
      // The store is gone, and with it everybody whom leaving could concern.
    }
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  comm::StoreClient& store() const { return *client_; }

  void give_up(const Error& error) {
    try {
      if (exit_code(error.kind()) == exit_code(ErrorKind::user)) return leave_mistake();
      client_->get(kMistake, 0.0);
    } catch (const Error&) {
      return;  // nobody has found one, or the store is gone
    }
    throw FoundByAnotherRank();
  }

  void finish(double seconds) {
    client_->set(arrival_key("done", place_.rank), "");
    if (server_) {
      const std::vector<int> absent = absent_from(*client_, "done", place_.size, seconds);
      client_->set("done", fmt::format("{}", fmt::join(absent, ", ")));
    }
    const std::string absent = client_->get("done", seconds + kLeaveSeconds);
    if (!absent.empty()) {
      fail(ErrorKind::comm, "these of {} ranks were not done within {:.1f} s after rank 0: {}", place_.size, seconds,
           absent);
    }
  }

 private:
  void leave_mistake() {
    client_->set(kMistake, "");
    client_->set(comm::last_word_key(place_.rank), kMistake);
    leave_seconds_ = kMistakeSeconds;
  }

  const config::RankEnvironment& place_;
  double leave_seconds_ = kLeaveSeconds;
  std::unique_ptr<comm::StoreServer> server_;  // rank 0 alone; outlives the client
  std::unique_ptr<comm::StoreClient> client_;
};

Boot::Boot(const BootOptions& options)
    : place_(place_in(options.environment)), timeout_(options.communication_timeout) {
  const bool on_gpu = options.device == Device::cuda;
  bind_to_numa_node(place_, options.environment);
  if (place_.size == 1) {
    world_ = comm::make_lone_world(options.device);
    return;
  }
  if (on_gpu) require_accelerator();
  meeting_ = std::make_unique<Meeting>(place_, options);
  comm::JoinOptions join{
      .rank = place_.rank, .size = place_.size, .start_deadline = options.start_timeout, .store = &meeting_->store()};
  if (on_gpu) join.device_index = place_.local_rank % static_cast<int>(find_accelerators().size());
  try {
    world_ = on_gpu ? comm::join_nccl(join) : comm::join_gloo(join);
  } catch (const Error& error) {
    give_up(error);
    throw;
  }
  world_->set_deadline(options.communication_timeout);
  stop_signals::hold();  // the others count on this rank from here on
}

Boot::~Boot() = default;

void Boot::finish() {
  if (meeting_) meeting_->finish(timeout_);
}

void Boot::give_up(const Error& error) {
  if (meeting_) meeting_->give_up(error);
}

}  // namespace megalith::launch
