#include "launch/ranks/boot.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "comm/store/rendezvous.h"
#include "config/environment/variables.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/process/failpoint.h"
#include "core/process/launcher_line.h"
#include "core/process/start_laps.h"
#include "core/process/stop_signals.h"
#include "launch/ranks/monitored.h"
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

int64_t generation_in(const config::Lookup& environment) {
  return config::Variables(environment).count("MEGALITH_GENERATION").value_or(0);
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

std::unique_ptr<comm::StoreServer> serve_own_store(const comm::StoreServerOptions& options) {
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

// For tests of correctness: NCCL takes two ranks on one GPU for a mistake, but not two machines. (local.cpp tells it to
// its ranks.)
void share_gpus(int rank, int gpus, const config::Lookup& environment) {
  if (config::Variables(environment).count("LOCAL_WORLD_SIZE").value_or(1) <= gpus) return;
  ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 0);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  ::setenv("NCCL_IB_DISABLE", "1", 0);
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
  if (has_monitor(environment)) return stop_signals::ignore();
  LauncherLine* launcher = launcher_of(environment);
  stop_signals::take({.launcher = launcher, .speaks = launcher == nullptr && place_in(environment).rank == 0});
}

// The store, as one rank has it. Without a monitor rank 0 serves it until the others have left.
class Boot::Meeting {
 public:
  Meeting(const config::RankEnvironment& place, const BootOptions& options) : place_(place) {
    const std::string secret = secret_of(place, options.environment);
    const int64_t generation = generation_in(options.environment);
    const auto port = static_cast<uint16_t>(place.master_port);
    const bool is_served = has_monitor(options.environment);
    if (place.rank == 0 && !is_served) {
      server_ = serve_own_store({.address = listening_address(place.master_address),
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
      ErrorFacts facts;
      if (error.kind() == ErrorKind::comm && !is_served) facts.ranks = {0};
      throw Error(error.kind(),
                  fmt::format("rank {} of {} could not meet {}: {} (start timeout {:.1f} s)", place.rank, place.size,
                              is_served ? "the store of its run" : "rank 0", error.what(), options.start_timeout),
                  std::move(facts));
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
    if (place_.rank == 0) {
      const std::vector<int> absent = absent_from(*client_, "done", place_.size, seconds);
      client_->set("done", comm::ranks_in_words(absent));
    }
    const std::string absent = client_->get("done", seconds + kLeaveSeconds);
    if (!absent.empty()) {
      throw Error(
          ErrorKind::comm,
          fmt::format("these of {} ranks were not done within {:.1f} s after rank 0: {}", place_.size, seconds, absent),
          {.ranks = comm::ranks_in(absent)});
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
  std::unique_ptr<comm::StoreServer> server_;  // rank 0's, without a monitor; outlives the client
  std::unique_ptr<comm::StoreClient> client_;
};

Boot::Boot(const BootOptions& options)
    : place_(place_in(options.environment)),
      timeout_(options.communication_timeout),
      own_page_(options.page == nullptr ? std::make_unique<StatusPage>() : nullptr),
      page_(options.page == nullptr ? *own_page_ : *options.page) {
  set_failpoint_rank(place_.rank, generation_in(options.environment));
  pass_failpoint("launch.start");
  page_.enter(Section::rendezvous);
  const bool on_gpu = options.device == Device::cuda;
  bind_to_numa_node(place_, options.environment);
  if (place_.size == 1) {
    world_ = comm::make_lone_world(options.device);
    world_->set_status_page(page_);
    return;
  }
  if (on_gpu) require_accelerator();
  end_start_lap("device");
  std::vector<int> all(static_cast<size_t>(place_.size));
  std::iota(all.begin(), all.end(), 0);
  meetings_ = page_.add_group("meeting", all, place_.rank);
  const StatusPage::Inside joining(meetings_, {.operation = "join"});
  meeting_ = std::make_unique<Meeting>(place_, options);
  comm::JoinOptions join{
      .rank = place_.rank, .size = place_.size, .start_deadline = options.start_timeout, .store = &meeting_->store()};
  if (on_gpu) {
    const auto gpus = static_cast<int>(find_accelerators().size());
    join.device_index = place_.local_rank % gpus;
    if (has_monitor(options.environment)) share_gpus(place_.rank, gpus, options.environment);
  }
  try {
    world_ = on_gpu ? comm::join_nccl(join) : comm::join_gloo(join);
    end_start_lap("meeting");
  } catch (const Error& error) {
    give_up(error);
    throw;
  }
  world_->set_status_page(page_);
  world_->set_deadline(options.communication_timeout);
  stop_signals::hold();  // the others count on this rank from here on
}

Boot::~Boot() = default;

void Boot::finish() {
  page_.enter(Section::end);
  const StatusPage::Inside finishing(meetings_, {.operation = "finish"});
  if (meeting_) meeting_->finish(timeout_);
}

void Boot::give_up(const Error& error) {
  if (meeting_) meeting_->give_up(error);
}

}  // namespace megalith::launch
