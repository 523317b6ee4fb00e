#include "launch/boot.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "comm/store.h"
#include "config/variables.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"

namespace megalith::launch {

namespace {
constexpr double kAnswerSeconds = 60.0;
// For others to hear the store's last words before the rank that serves it goes.
constexpr double kLeaveSeconds = 3.0;

config::RankEnvironment place_in(const config::Lookup& environment) {
  return config::rank_environment(environment).value_or(config::RankEnvironment{});
}

// By its text alone: many machines know their own name as a loopback address, other machines do not.
bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string listening_address(const std::string& host) {
  if (is_loopback(host)) return host;
  return host.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

std::string secret_of(const config::RankEnvironment& place, const config::Variables& variables) {
  std::string secret = variables.text("MEGALITH_STORE_SECRET").value_or("");
  if (secret.empty() && !is_loopback(place.master_address)) {
    user_error(
        "the ranks meet at '{}', which other machines can reach: set MEGALITH_STORE_SECRET to one secret for all of "
        "them, for example with `export MEGALITH_STORE_SECRET=$(openssl rand -hex 16)` where the job starts",
        place.master_address);
  }
  return secret;
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

// The store, as one rank has it. Rank 0 serves it until the others have left.
class Boot::Meeting {
 public:
  Meeting(const config::RankEnvironment& place, const BootOptions& options) : place_(place) {
    const config::Variables variables(options.environment);
    const std::string secret = secret_of(place, variables);
    const int64_t generation = variables.count("MEGALITH_GENERATION").value_or(0);
    const auto port = static_cast<uint16_t>(place.master_port);
    if (place.rank == 0) {
      server_ = std::make_unique<comm::StoreServer>(
          comm::StoreServerOptions{.address = listening_address(place.master_address),
                                   .port = port,
                                   .generation = generation,
                                   .secret = secret});
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
      if (server_) absent_from(*client_, "left", place_.size, kLeaveSeconds);
    } catch (const std::exception&) {
      // The store is gone, and with it everybody whom leaving could concern.
    }
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  comm::StoreClient& store() const { return *client_; }

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
  const config::RankEnvironment& place_;
  std::unique_ptr<comm::StoreServer> server_;  // rank 0 alone; outlives the client
  std::unique_ptr<comm::StoreClient> client_;
};

Boot::Boot(const BootOptions& options)
    : place_(place_in(options.environment)), timeout_(options.communication_timeout) {
  const bool on_gpu = options.device == Device::cuda;
  if (place_.size == 1) return;
  if (on_gpu) require_accelerator();
  meeting_ = std::make_unique<Meeting>(place_, options);
  comm::JoinOptions join{
      .rank = place_.rank, .size = place_.size, .start_deadline = options.start_timeout, .store = &meeting_->store()};
  if (on_gpu) join.device_index = place_.local_rank % static_cast<int>(find_accelerators().size());
  world_ = on_gpu ? comm::join_nccl(join) : comm::join_gloo(join);
  world_->set_deadline(options.communication_timeout);
}

Boot::~Boot() = default;

void Boot::finish() {
  if (meeting_) meeting_->finish(timeout_);
}

}  // namespace megalith::launch
