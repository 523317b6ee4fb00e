#include "resilience/monitor/node_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/status_page.h"
#include "launch/ranks/start_process.h"
#include "resilience/monitor/ends.h"
#include "resilience/monitor/page_report.h"

namespace megalith::resilience {

namespace fs = std::filesystem;

namespace {
// For the anchor to write down how a process ended that it was the parent of.
constexpr double kUnknownEndSeconds = 0.5;

// A process that no other takes the place of.
class ProcessDescriptor {
 public:
  ProcessDescriptor() = default;
  explicit ProcessDescriptor(pid_t pid) : descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~ProcessDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ProcessDescriptor(ProcessDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ProcessDescriptor& operator=(ProcessDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  void send(int signal) const {
    if (descriptor_ >= 0) ::syscall(SYS_pidfd_send_signal, descriptor_, signal, nullptr, 0);
  }

 private:
  int descriptor_ = -1;
};

// Both ends of a LauncherLine.
struct Line {
  LauncherLine own;
  int other;
};
Line make_line() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    io_error_errno("making a line to a process");
  return {LauncherLine(ends[0]), ends[1]};
}

ProcessReport process_report(const ProcessIdentity& process) {
  const std::optional<ProcessFacts> facts = facts_of(process);
  if (!facts) return {.state = 'X'};
  ProcessReport report{.state = facts->state, .cpu_seconds = facts->cpu_seconds, .stack = describe(*facts)};
  if (!facts->threads.empty()) report.wait_channel = facts->threads.front().wait_channel;
  return report;
}
}  // namespace

struct NodeProcesses::Tracked {
  ProcessKey key;
  ProcessIdentity process;
  ProcessDescriptor descriptor;
  std::optional<LauncherLine> line;
  std::optional<StatusReader> page;
  std::optional<RankStatus> status;
  std::string page_problem;
  int64_t beats = -1;
  double beat_at = 0.0;  // monotonic seconds, as seen here
  std::optional<double> gone_at;
  std::optional<ProcessEnd> end;
};

NodeProcesses::NodeProcesses(NodeFolders folders, std::string run)
    : folders_(std::move(folders)), run_(std::move(run)) {
  for (const auto& entry : fs::directory_iterator(folders_.records())) {
    const std::optional<ProcessKey> key = process_key(entry.path().filename().string());
    const std::optional<ProcessIdentity> process = key ? read_record(entry.path(), run_) : std::nullopt;
    if (process) adopt(*key, *process);
  }
}

NodeProcesses::~NodeProcesses() = default;

// The descriptor is opened first: if the process is the one that is meant then, the descriptor is its own.
void NodeProcesses::adopt(const ProcessKey& key, const ProcessIdentity& process) {
  auto tracked = std::make_unique<Tracked>();
  tracked->key = key;
  tracked->process = process;
  tracked->beat_at = monotonic_seconds();
  ProcessDescriptor descriptor(process.pid);
  if (is_alive(process)) tracked->descriptor = std::move(descriptor);
  processes_[key] = std::move(tracked);
}

void NodeProcesses::start(const ProcessKey& key, const Start& start) {
  if (has(key)) return;
  const auto open_log = [&] { return File::open_for_appending(folders_.log(key)); };
  const File log = open_log();
  if (!key.is_store())
    StatusPage::create(folders_.page(key),
                       {.run = run_, .generation = key.generation, .rank = static_cast<int>(key.rank)});
  Line line = make_line();
  const pid_t pid = launch::start_process({.command = start.command,
                                           .environment = start.environment,
                                           .output = log.descriptor(),
                                           .errors = log.descriptor(),
                                           .line = line.other,
                                           .is_detached = true});
  ::close(line.other);
  const std::optional<ProcessIdentity> process = identify_process(pid);
  MEGALITH_CHECK(process.has_value(), "process {} is gone before anybody has waited for it", pid);
  // It goes on once it hears the secret, so that none ever runs that a later monitor would not find.
  write_record(folders_.record(key), run_, *process);
  line.own.send_secret(start.secret);
  adopt(key, *process);
  processes_.at(key)->line.emplace(std::move(line.own));
}

bool NodeProcesses::is_running(const ProcessKey& key) const {
  const auto found = processes_.find(key);
  return found != processes_.end() && !found->second->end;
}

LauncherLine* NodeProcesses::line(const ProcessKey& key) {
  const auto found = processes_.find(key);
  return found == processes_.end() || !found->second->line ? nullptr : &*found->second->line;
}

bool NodeProcesses::watch(double overslept) {
  bool has_ended = false;
  for (const auto& [key, tracked] : processes_) {
    if (!key.is_store()) read_page(*tracked, overslept);
    if (tracked->end) continue;
    collect_end(*tracked);
    has_ended = has_ended || tracked->end;
  }
  return has_ended;
}

// Its own children's ends it asks the kernel for, those of others it reads; before a process has ended there is
// neither.
void NodeProcesses::collect_end(Tracked& tracked) {
  if (const std::optional<EndedChild> child = find_ended_child(tracked.process.pid)) {
    tracked.end = child->end;
    write_end(folders_.ends(), *child);
    let_go(*child);
    return;
  }
  if (is_alive(tracked.process)) return;
  tracked.end = read_end(folders_.ends(), tracked.process);
  if (tracked.end) return;
  const double now = monotonic_seconds();
  if (!tracked.gone_at) tracked.gone_at = now;
  if (now - *tracked.gone_at > kUnknownEndSeconds) tracked.end = ProcessEnd{};
}

// A page that cannot be read now leaves the one that was read last: its age tells.
void NodeProcesses::read_page(Tracked& tracked, double overslept) {
  tracked.beat_at += overslept;
  try {
    if (!tracked.page) tracked.page.emplace(folders_.page(tracked.key));
    RankStatus status = tracked.page->read();
    if (status.pid == 0) return;  // the rank has not opened it
    if (status.run != run_ || status.generation != tracked.key.generation || status.rank != tracked.key.rank ||
        status.pid != tracked.process.pid || status.start_ticks != tracked.process.start_ticks)
      data_error("it is that of process {}, rank {}, generation {} of run '{}'", status.pid, status.rank,
                 status.generation, status.run);
    if (status.beats != tracked.beats) tracked.beat_at = monotonic_seconds();
    tracked.beats = status.beats;
    tracked.status = std::move(status);
    tracked.page_problem.clear();
    if (stopping_ == tracked.key.generation && !tracked.status->stop_is_asked) tracked.page->ask_to_stop();
  } catch (const Error& error) {
    tracked.page_problem = error.what();
  }
}

std::vector<RankReport> NodeProcesses::reports(bool with_proc) const {
  std::vector<RankReport> reports;
  const int64_t newest = processes_.empty() ? 0 : processes_.rbegin()->first.generation;
  const double now = monotonic_seconds();
  for (const auto& [key, found] : processes_) {
    const Tracked& tracked = *found;
    if (key.generation != newest && tracked.end) continue;
    RankReport report{.rank = key.rank,
                      .generation = key.generation,
                      .pid = tracked.process.pid,
                      .page = std::nullopt,
                      .page_problem = tracked.page_problem,
                      .process = std::nullopt,
                      .end = tracked.end};
    if (tracked.status) {
      report.page = page_report(*tracked.status, now);
      report.page->beat_seconds = std::max(0.0, now - tracked.beat_at);
    }
    if (with_proc && !tracked.end) report.process = process_report(tracked.process);
    reports.push_back(std::move(report));
  }
  return reports;
}

void NodeProcesses::kill_up_to(int64_t generation) {
  for (const auto& [key, tracked] : processes_) {
    if (key.generation > generation || tracked->end) continue;
    // The group is the process's own as long as that has not been waited for.
    if (is_alive(tracked->process)) ::kill(-tracked->process.pid, SIGKILL);
    tracked->descriptor.send(SIGKILL);
  }
}

bool NodeProcesses::is_clear_of(int64_t generation) const {
  return std::none_of(processes_.begin(), processes_.end(),
                      [&](const auto& entry) { return entry.first.generation <= generation && !entry.second->end; });
}

void NodeProcesses::ask_to_stop(int64_t generation) {
  stopping_ = generation;
}

void NodeProcesses::forget_before(int64_t generation) {
  for (auto entry = processes_.begin(); entry != processes_.end();) {
    const ProcessKey key = entry->first;
    if (key.generation >= generation || !entry->second->end) {
      ++entry;
      continue;
    }
    entry = processes_.erase(entry);
    for (const fs::path& path : {folders_.record(key), folders_.page(key), folders_.store_place(key.generation),
                                 folders_.config(key.generation), folders_.holders(key.generation)})
      remove_if_there(path);
  }
}

}  // namespace megalith::resilience
