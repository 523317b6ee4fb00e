#include "launch/local/local_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "config/scalar.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/host.h"
#include "launch/bash_quote.h"
#include "launch/job_script.h"
#include "launch/log_printer.h"

namespace megalith::launch {

namespace {

// A pid counts only together with the time it started, so that one that is used again is never taken for it.
std::string started_at(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return "";
  std::istringstream fields(text.substr(end_of_name + 1));
  constexpr int kState = 3, kStartTime = 22;
  std::string field;
  for (int i = kState; i <= kStartTime && fields >> field; ++i) {
    if (i == kState && field == "Z") return "";
  }
  return field;
}

// "PID STARTED HOST"
struct LocalJob {
  pid_t process = 0;
  std::string started;
  std::string host;

  static LocalJob parse(const std::string& id) {
    std::istringstream words(id);
    LocalJob job;
    words >> job.process >> job.started >> job.host;
    return job;
  }
  std::string id() const { return fmt::format("{} {} {}", process, started, host); }
  bool is_here() const { return host == host_name(); }
  bool runs() const { return is_here() && process > 1 && !started.empty() && started_at(process) == started; }
};

std::string time_limit_of(const Launch& launch) {
  int64_t seconds = launch.time_limit - static_cast<int64_t>(launch.profile.seconds("save_margin"));
  if (launch.max_time > 0) seconds = std::min(seconds, launch.max_time);
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  return fmt::format("trainer.max_time={:02}:{:02}:{:02}:{:02}", seconds / kDay, seconds / kHour % 24,
                     seconds / kMinute % 60, seconds % kMinute);
}

pid_t start_in_background(const std::string& script, const std::string& log) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const char* const command[] = {"bash", script.c_str(), nullptr};
  pid_t process = 0;
  const int problem =
      ::posix_spawnp(&process, "bash", &actions, &attributes, const_cast<char* const*>(command), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) fail(ErrorKind::io, "cannot start {}: {}", script, std::strerror(problem));
  return process;
}

LocalJob job_of(const LaunchRecord& record) {
  return record.ids.empty() ? LocalJob{} : LocalJob::parse(record.ids.front());
}

}  // namespace

std::string LocalCluster::render(const Launch& launch) const {
  std::string text = "#!/bin/bash\n# On this machine, in the background. Nothing starts it again.\n\n";
  text += script_settings(launch) + script_files(launch) + "job=$$\n\n" + kScriptFunctions + "\n" + kNewestCheckpoint +
          "\n" + kScriptStart + "\n";
  if (launch.work == Work::ranks) text += "export MEGALITH_GENERATION=$generation\n";
  text += script_exports(launch);
  text += "\nnote start \"$generation\" \"$job\" \"$(hostname)\"\n";
  text += "trap : USR1 TERM HUP INT  # go to the program; this script waits for its answer\n";
  for (const std::string& file : launch.profile.texts("source")) text += fmt::format("source {}\n", bash_quoted(file));
  std::vector<std::string> command = command_per_node(launch);
  if (launch.saves && launch.time_limit > 0) command.push_back(time_limit_of(launch));
  text += bash_command(command, launch.verb.size() + 1);
  text += R"(
code=$?
[[ ! -e $launch/stop ]] || end "$code" "stopped on request"
case $code in
  0) end 0 "complete" ;;
  2) end 2 "the input is wrong, the log says what" ;;
  75) end 75 "stopped early, step $(newest_checkpoint) saved; launch again to go on" ;;
esac
end "$code" "failed"
)";
  return text;
}

std::vector<std::string> LocalCluster::problems(const Launch& launch) const {
  std::vector<std::string> problems;
  if (launch.nodes > 1) problems.push_back(fmt::format("this machine is one node, not {}", launch.nodes));
  if (launch.chain > 1) problems.emplace_back("--chain is for Slurm: nothing ends a run on this machine");
  if (launch.saves && launch.time_limit > 0 &&
      launch.time_limit <= static_cast<int64_t>(launch.profile.seconds("save_margin"))) {
    problems.push_back(
        fmt::format("the time limit of {} s is not longer than the {} s before it at which training stops and saves",
                    launch.time_limit, launch.profile.seconds("save_margin")));
  }
  return problems;
}

std::string LocalCluster::check(const Launch&) const {
  return "this machine has nobody to ask";
}

std::vector<std::string> LocalCluster::submit(const Launch& launch) const {
  const pid_t process =
      start_in_background((launch.folder / rendered_name()).string(), (launch.folder / kLogName).string());
  return {LocalJob{.process = process, .started = started_at(process), .host = host_name()}.id()};
}

std::vector<JobState> LocalCluster::status(const LaunchRecord& record) const {
  const LocalJob job = job_of(record);
  if (!job.host.empty() && !job.is_here() && !record.ending())
    fail(ErrorKind::io, "{} was started on {}: ask there", record.name, job.host);
  return {{.id = std::to_string(job.process),
           .phase = job.runs() ? JobState::Phase::running : JobState::Phase::ended,
           .word = job.runs() ? "running" : "ended",
           .nodes = job.host}};
}

void LocalCluster::logs(const LaunchRecord& record, const LogOptions& options) const {
  print_log(record, options, [&] { return !job_of(record).runs(); });
}

void LocalCluster::stop(const LaunchRecord& record, bool now) const {
  replace_file(record.file(kStopName), "");
  const LocalJob job = job_of(record);
  if (!job.runs()) {
    if (!record.ending()) replace_file(record.file(kEndedName), "75 stopped on request\n");
    return;
  }
  ::kill(-job.process, now ? SIGINT : SIGUSR1);
  if (!now) return;
  // The second one, a while later, means it.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  if (job.runs()) ::kill(-job.process, SIGINT);
}

}  // namespace megalith::launch
