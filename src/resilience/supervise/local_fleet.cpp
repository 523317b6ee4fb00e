#include "resilience/supervise/local_fleet.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "launch/ranks/start_process.h"
#include "observe/sinks/log_files.h"
#include "resilience/control_socket.h"
#include "resilience/monitor/anchor.h"

namespace megalith::resilience {

namespace fs = std::filesystem;

namespace {
constexpr double kLookSeconds = 0.05;
constexpr double kRestSeconds = 1.0;  // between two starts of the same anchor
constexpr double kShortLife = 10.0;   // seconds; one that lives less long cannot do its work
constexpr int kMostShortLives = 5;

void reap_all() {
  int status = 0;
  while (::waitpid(-1, &status, WNOHANG) > 0) {
  }
}
}  // namespace

LocalFleet::LocalFleet(LocalFleetOptions options) : options_(std::move(options)) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // of monitors that lost their anchors
  require_private_directory(options_.memory);
  for (int64_t index = 0; index < options_.count; ++index) {
    Member member{.node = fmt::format("node{}", index)};
    if (const auto anchor = read_record(folders(member.node).anchor(), member.node); anchor && is_alive(*anchor))
      member.anchor = *anchor;
    members_.push_back(std::move(member));
  }
  is_new_ = std::none_of(members_.begin(), members_.end(), [&](const Member& m) { return is_running(m); });
  for (const Member& member : members_) {
    if (is_new_) make_directory(folders(member.node).disk);
    if (!is_there(member)) {
      observe::log_warning(fmt::format("{} is lost: {} is not there; make that folder to bring it back", member.node,
                                       folders(member.node).disk.string()));
    }
  }
}

std::vector<std::string> LocalFleet::nodes() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.node);
  return names;
}

NodeFolders LocalFleet::folders(const std::string& node) const {
  return {.disk = options_.nodes / node, .memory = options_.memory / node / "monitor"};
}

bool LocalFleet::is_running(const Member& member) const {
  return member.anchor.pid != 0 && is_alive(member.anchor);
}

bool LocalFleet::is_there(const Member& member) const {
  std::error_code status;
  return fs::is_directory(folders(member.node).disk, status);
}

void LocalFleet::tend() {
  reap_all();
  for (Member& member : members_) {
    const double age = monotonic_seconds() - member.started;
    if (is_running(member) || !is_there(member) || age < kRestSeconds || member.short_lives > kMostShortLives) continue;
    member.short_lives = member.anchor.pid != 0 && age < kShortLife ? member.short_lives + 1 : 0;
    if (member.short_lives > kMostShortLives) {
      observe::log_error(fmt::format("the monitor of {} ends again and again: see {}", member.node,
                                     folders(member.node).monitor_log().string()));
      continue;
    }
    if (member.anchor.pid != 0) observe::log_warning(fmt::format("starting the monitor of {} again", member.node));
    start(member);
  }
}

void LocalFleet::start(Member& member) {
  const NodeFolders own = folders(member.node);
  member.started = monotonic_seconds();
  make_memory_of_node(options_.memory, member.node);
  own.make();
  const File log = File::open_for_appending(own.monitor_log());
  std::vector<std::string> command = {"/proc/self/exe", "monitor",   "--run",    options_.run_directory,
                                      "--node",         member.node, "--socket", options_.socket,
                                      "--disk",         own.disk,    "--memory", own.memory};
  if (!options_.failpoints.empty()) command.insert(command.end(), {"--failpoints", options_.failpoints});
  const pid_t pid = launch::start_process({.command = std::move(command),
                                           .environment = {},
                                           .output = log.descriptor(),
                                           .errors = log.descriptor(),
                                           .is_detached = true});
  member.anchor = identify_process(pid).value_or(ProcessIdentity{.pid = pid});
}

void LocalFleet::end(double seconds) {
  const double until = monotonic_seconds() + seconds;
  const auto any_runs = [&] {
    reap_all();
    return std::any_of(members_.begin(), members_.end(), [&](const Member& m) { return is_running(m); });
  };
  while (any_runs() && monotonic_seconds() < until)
    std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
  if (any_runs()) kill();
}

// Anchors first, which would start monitors again.
void LocalFleet::kill() {
  const auto kill_one = [](const ProcessIdentity& process) {
    if (is_alive(process)) ::kill(-process.pid, SIGKILL);
  };
  for (const Member& member : members_) {
    const NodeFolders own = folders(member.node);
    if (member.anchor.pid != 0) kill_one(member.anchor);
    if (const auto worker = read_record(own.worker(), member.node)) kill_one(*worker);
    std::error_code status;
    for (const auto& entry : fs::directory_iterator(own.records(), status)) {
      if (const auto process = read_record(entry.path(), options_.run)) kill_one(*process);
    }
  }
  reap_all();
}

}  // namespace megalith::resilience
