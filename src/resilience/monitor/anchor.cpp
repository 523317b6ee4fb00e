#include "resilience/monitor/anchor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <ctime>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/file_lock.h"
#include "core/process/stop_signals.h"
#include "launch/ranks/start_process.h"
#include "resilience/monitor/ends.h"

namespace megalith::resilience {

namespace {
constexpr double kShortLife = 5.0;  // seconds; a monitor that lives less long cannot do its work
constexpr int kMostShortLives = 5;
constexpr long kLookNanoseconds = 100'000'000;

std::optional<int> take_verdict(const NodeFolders& folders) {
  if (size_if_there(folders.verdict()) < 0) return std::nullopt;
  const std::string text = read_text(folders.verdict());
  int code = megalith::exit_code(ErrorKind::internal);
  std::from_chars(text.data(), text.data() + text.size(), code);
  remove_if_there(folders.verdict());
  return code;
}

class Anchor {
 public:
  explicit Anchor(const AnchorOptions& options) : options_(options) {
    sigemptyset(&awaited_);
    for (const auto& [signal, name] : kStopSignals) sigaddset(&awaited_, signal);
    sigaddset(&awaited_, SIGCHLD);
    stop_signals::await_in_this_thread();
    ::sigprocmask(SIG_BLOCK, &awaited_, nullptr);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!find_worker()) remove_if_there(options_.folders.verdict());
  }

  int run() {
    while (true) {
      if (worker_.pid == 0 && !find_worker()) start_worker();
      const timespec timeout{.tv_sec = 0, .tv_nsec = kLookNanoseconds};
      const int signal = ::sigtimedwait(&awaited_, nullptr, &timeout);
      if (signal > 0 && signal != SIGCHLD && is_alive(worker_)) ::kill(worker_.pid, signal);
      const std::optional<int64_t> code = reap();
      if (is_alive(worker_)) continue;
      if (const std::optional<int> verdict = take_verdict(options_.folders)) return *verdict;
      if (code == megalith::exit_code(ErrorKind::user)) return static_cast<int>(*code);
      if (monotonic_seconds() - started_ > kShortLife) short_lives_ = 0;
      if (++short_lives_ > kMostShortLives)
        fail(ErrorKind::internal, "the monitor of node '{}' ended {} times within {} s of its start: see what it wrote",
             options_.node, kMostShortLives, kShortLife);
      worker_ = {};
    }
  }

 private:
  // One that another anchor has left.
  bool find_worker() {
    const auto worker = read_record(options_.folders.worker(), options_.node);
    if (!worker || !is_alive(*worker)) return false;
    worker_ = *worker;
    return true;
  }

  void start_worker() {
    started_ = monotonic_seconds();
    const pid_t pid = launch::start_process(
        {.command = options_.worker, .output = STDOUT_FILENO, .errors = STDERR_FILENO, .is_detached = true});
    worker_ = identify_process(pid).value_or(ProcessIdentity{.pid = pid});
  }

  // The monitor's exit code, if it ended with one.
  std::optional<int64_t> reap() {
    std::optional<int64_t> code;
    while (const std::optional<EndedChild> child = find_ended_child()) {
      if (child->process == worker_) {
        code = child->end.exit_code;
        let_go(*child);  // its ranks have groups of their own
      } else {
        write_end(options_.folders.ends(), *child);
        let_go(*child);
      }
    }
    return code;
  }

  const AnchorOptions& options_;
  sigset_t awaited_{};
  ProcessIdentity worker_;  // pid 0: none
  double started_ = 0.0;
  int short_lives_ = 0;
};
}  // namespace

int run_anchor(const AnchorOptions& options) {
  options.folders.make();
  const File held = File::open_for_appending(options.folders.anchor_lock());
  if (try_lock(held) == LockResult::busy) {
    user_error("node '{}' has a monitor already, which keeps {}; give this one another name", options.node,
               options.folders.memory.string());
  }
  write_record(options.folders.anchor(), options.node, own_process());
  return Anchor(options).run();
}

void write_verdict(const NodeFolders& folders, int64_t exit_code) {
  replace_file(folders.verdict(), fmt::format("{}\n", exit_code));
}

}  // namespace megalith::resilience
