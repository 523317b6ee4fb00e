#include "resilience/supervise/supervise.h"

#include <algorithm>
#include <thread>

#include "comm/store/socket.h"
#include "config/print.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/exit_codes.h"
#include "core/process/failpoint.h"
#include "core/process/stop_signals.h"
#include "observe/sinks/event_text.h"
#include "observe/sinks/log_files.h"
#include "resilience/record/control_directory.h"
#include "resilience/record/goodput_log.h"
#include "resilience/record/journal.h"
#include "resilience/record/run_name.h"
#include "resilience/supervise/local_fleet.h"
#include "resilience/supervise/log_follower.h"
#include "resilience/supervise/supervisor.h"
#include "resilience/unix_transport.h"
#include "train/run/run_directory.h"

namespace megalith::resilience {

namespace fs = std::filesystem;

namespace {
constexpr double kLookSeconds = 0.1;
constexpr double kGoodputSeconds = 1.0;
constexpr double kClaimSeconds = 2.0;      // for another supervisor of the run to begin
constexpr double kFarewellSeconds = 20.0;  // for monitors to end once the run is over

// Every node of a fleet of folders has a memory and a disk of its own.
void give_nodes_their_own(config::Run& run, const fs::path& memory, const fs::path& nodes) {
  config::CheckpointCallback& checkpoints = run.exp_manager.checkpoint_callback_params;
  const auto is_shared = [](const std::string& path) { return path.find("%n") == std::string::npos; };
  if (checkpoints.memory_dirpath != "none" && is_shared(checkpoints.memory_dirpath))
    checkpoints.memory_dirpath = memory / "%n";
  if (!checkpoints.local_dirpath.empty() && is_shared(checkpoints.local_dirpath)) {
    user_error(
        "exp_manager.checkpoint_callback_params.local_dirpath is {}, which all nodes of this fleet would share: put %n "
        "into it, which stands for a node's name, for example {}",
        checkpoints.local_dirpath, (nodes / "%n" / "checkpoints").string());
  }
}

class SupervisorProcess {
 public:
  explicit SupervisorProcess(const Supervision& supervision)
      : run_(supervision.run),
        fewer_nodes_(supervision.fewer_nodes),
        directory_(fs::absolute(train::run_path(run_)).lexically_normal()),
        memory_(memory_of_run(directory_)),
        nodes_(supervision.nodes_directory.empty() ? directory_ / "nodes" : fs::absolute(supervision.nodes_directory)),
        transport_(supervision.listen ? listen_for_monitors(door_of(supervision)) : nullptr),
        claimed_(transport_ ? claim_among_others() : claim()),
        goodput_(open_goodput_log()),
        fleet_(transport_ ? nullptr : make_fleet(supervision)),
        control_(directory_),
        supervisor_(
            settings(),
            {.boot_id = observe::boot_id(), .alarm = observe::log_warning, .is_new_fleet = fleet_ && fleet_->is_new()},
            control_, *transport_) {}

  int run() {
    if (!fleet_) {
      observe::log_info(
          fmt::format("run '{}' waits for its monitors at port {}", claimed_.identity.id, transport_->port()));
    }
    while (!supervisor_.exit_code()) {
      transport_->wait(kLookSeconds);
      if (heed_signals()) return kExitInterrupted;
      if (fleet_) fleet_->tend();
      while (const std::optional<std::string> alarm = transport_->next_alarm()) observe::log_warning(*alarm);
      supervisor_.poll({.wall = wall_seconds(), .monotonic = monotonic_seconds()});
      if (supervisor_.leads()) tell(supervisor_.state());
      write_goodput();
    }
    const int code = static_cast<int>(*supervisor_.exit_code());
    if (fleet_) fleet_->end(kFarewellSeconds);
    if (log_) log_->pump(stdout);
    goodput_at_ = 0.0;
    write_goodput();
    if (fleet_ && code == 0) fs::remove_all(memory_);
    return code;
  }

 private:
  static Door door_of(const Supervision& supervision) {
    Door door;
    door.endpoint = *supervision.listen;
    door.credentials = supervision.credentials;
    return door;
  }

  // The socket is made when nobody else has this run.
  std::unique_ptr<LocalFleet> make_fleet(const Supervision& supervision) {
    Door door;
    door.socket = memory_ / "socket";
    transport_ = listen_for_monitors(door);
    return std::make_unique<LocalFleet>(LocalFleetOptions{.run_directory = directory_,
                                                          .run = claimed_.identity.id,
                                                          .nodes = nodes_,
                                                          .memory = memory_,
                                                          .socket = door.socket,
                                                          .count = supervision.nodes + supervision.spares,
                                                          .failpoints = supervision.failpoints});
  }

  // Supervisors of one run may begin at the same moment: each holds the directory only while it learns which run it is.
  // Who leads is settled by terms.
  train::ClaimedRun claim_among_others() {
    for (const double until = monotonic_seconds() + kClaimSeconds;;) {
      try {
        train::ClaimedRun claimed = claim();
        [[maybe_unused]] const File let_go = std::move(claimed.lock);
        return claimed;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::user || monotonic_seconds() > until) throw;
        std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
      }
    }
  }

  train::ClaimedRun claim() {
    if (!transport_) give_nodes_their_own(run_, memory_, nodes_);
    train::ClaimedRun claimed = train::claim_run(run_);
    if (!claimed.note.empty()) observe::log_warning(claimed.note);
    write_run_name(directory_, claimed.identity.id);
    return claimed;
  }

  std::optional<GoodputLog> open_goodput_log() const {
    const std::string& file = run_.supervision.goodput_log;
    if (file.empty()) return std::nullopt;
    return GoodputLog(file, directory_, claimed_.identity.id);
  }

  Settings settings() const {
    Settings settings = settings_of(run_);
    for (const std::string& row : settings.ladder.differences(Ladder()))
      observe::log_info(fmt::format("by {}: {}", run_.supervision.policy, row));
    settings.fewer_nodes = fewer_nodes_;
    if (run_.supervision.enable_workload_scaling && settings.nodes > 1) {
      observe::log_info(fewer_nodes_.empty()
                            ? "no smaller number of nodes suits the layout, the batch and the memory: where nodes are "
                              "missing and no spare is left the run waits, and gives up"
                            : fmt::format("where nodes are missing and no spare is left the run goes on with {} of {}",
                                          fmt::join(fewer_nodes_, ", "), settings.nodes));
    }
    settings.run = claimed_.identity.id;
    settings.config = config::to_yaml(run_);
    settings.first_generation = claimed_.identity.start();
    return settings;
  }

  // True after a second SIGINT.
  bool heed_signals() {
    const int signal = stop_signals::next_awaited();
    if (signal == 0) return false;
    const double now = monotonic_seconds();
    if (signal == SIGINT && interrupted_ > 0.0 && now - interrupted_ > kSecondInterruptSeconds) {
      write_stop_notice(STDERR_FILENO, StopNotice::quitting, signal);
      if (fleet_) fleet_->kill();
      return true;
    }
    if (signal == SIGINT && interrupted_ == 0.0) interrupted_ = now;
    if (!is_stopping_) write_stop_notice(STDERR_FILENO, StopNotice::stopping, signal);
    if (!is_stopping_) supervisor_.request_stop(0.0, stop_signal_name(signal));
    is_stopping_ = true;
    return false;
  }

  void tell(const RunState& state) {
    for (auto entry = std::find(state.story.rbegin(), state.story.rend(), told_).base(); entry != state.story.end();
         ++entry)
      observe::log_info(told_ = *entry);
    if (state.phase != phase_) {
      phase_ = state.phase;
      observe::log_info(fmt::format("generation {}: {}", state.generation(), name_of(phase_)));
    }
    if (state.roster && (!log_ || generation_ != state.roster->generation)) follow(*state.roster);
    if (log_) log_->pump(stdout);
  }

  void write_goodput() {
    const double now = monotonic_seconds();
    if (!goodput_ || now < goodput_at_) return;
    goodput_at_ = now + kGoodputSeconds;
    try {
      goodput_->follow();
    } catch (const Error& error) {
      observe::log_warning(fmt::format("resilience.goodput_log is written no longer: {}", error.what()));
      goodput_.reset();
    }
  }

  void follow(const Roster& roster) {
    if (log_) log_->pump(stdout);
    generation_ = roster.generation;
    const bool is_first = !log_;
    const NodeFolders first{.disk = nodes_ / roster.node_of(0).node, .memory = {}};
    log_.emplace(first.log({.generation = generation_, .rank = 0}), "[0] ");
    if (is_first) log_->skip();  // a supervisor before this one has shown it
  }

  config::Run run_;
  std::vector<int64_t> fewer_nodes_;
  fs::path directory_;
  fs::path memory_;
  fs::path nodes_;
  std::unique_ptr<UnixSupervisorTransport> transport_;
  train::ClaimedRun claimed_;
  std::optional<GoodputLog> goodput_;
  double goodput_at_ = 0.0;            // monotonic seconds
  std::unique_ptr<LocalFleet> fleet_;  // null: the nodes are machines of their own
  DiskControlDirectory control_;
  Supervisor supervisor_;
  std::optional<LogFollower> log_;
  int64_t generation_ = 0;
  RunPhase phase_ = RunPhase::gather;
  std::string told_;          // of the story
  double interrupted_ = 0.0;  // monotonic seconds; 0: not yet
  bool is_stopping_ = false;
};
}  // namespace

int supervise(const Supervision& supervision) {
  require_control_plane();
  stop_signals::await_in_this_thread();
  comm::ignore_broken_pipes();
  arm_failpoints(supervision.failpoints, kJournalFailpoints);
  return SupervisorProcess(supervision).run();
}

}  // namespace megalith::resilience
