#include "resilience/monitor/anchor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "resilience/monitor/ends.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

bool comes_true(const std::function<bool()>& condition) {
  for (int look = 0; look < 3000 && !condition(); ++look) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

// An anchor as a process of its own, over a shell that plays the monitor.
class Anchored {
 public:
  Anchored(const std::filesystem::path& directory, const std::string& monitor)
      : folders_{.disk = directory / "disk", .memory = directory / "memory"} {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // of what an anchor leaves
    const AnchorOptions options{.folders = folders_, .node = "node0", .worker = {"/bin/sh", "-c", monitor}};
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::setsid();  // as a launcher starts it
    int code = 99;
    try {
      code = run_anchor(options);
    } catch (const Error& error) {
      code = exit_code(error.kind());
    }
    ::_exit(code);
  }
  ~Anchored() {
    if (pid_ <= 0) return;
    kill(SIGKILL);
    for (pid_t left = some_child(); left > 0; left = some_child()) {
      ::kill(left, SIGKILL);
      ::waitpid(left, nullptr, 0);
    }
  }
  Anchored(const Anchored&) = delete;
  Anchored& operator=(const Anchored&) = delete;

  const NodeFolders& folders() const { return folders_; }
  void send(int signal) const { ::kill(pid_, signal); }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void kill(int signal) {
    send(signal);
    wait();
  }

 private:
  // 0: there is none.
  static pid_t some_child() {
    pid_t child = 0;
    std::ifstream("/proc/thread-self/children") >> child;
    return child;
  }

  NodeFolders folders_;
  pid_t pid_ = -1;
};

std::string text_at(const std::filesystem::path& path) {
  return size_if_there(path) < 0 ? "" : read_text(path);
}

// What a monitor does when it begins, in the words of a shell.
std::string lines_of_monitor(const std::filesystem::path& directory) {
  const std::string memory = (directory / "memory").string();
  return "echo node0 $$ $(awk '{print $22}' /proc/$$/stat) > " + memory + "/w; mv " + memory + "/w " + memory +
         "/worker; echo began >> " + memory + "/begun; ";
}

TEST(Anchor, EndsWithTheVerdictOfItsMonitor) {
  const testing::TempDir dir;
  Anchored anchored(dir.path(), "echo 75 > " + (dir.path() / "memory" / "verdict").string());
  EXPECT_EQ(anchored.wait(), 75);
  EXPECT_LT(size_if_there(anchored.folders().verdict()), 0);
}

TEST(Anchor, EndsWithAMistakeOfTheUser) {
  const testing::TempDir dir;
  EXPECT_EQ(Anchored(dir.path(), "exit 2").wait(), 2);
}

TEST(Anchor, StartsADeadMonitorAgain) {
  const testing::TempDir dir;
  const std::string begun = (dir.path() / "memory" / "begun").string();
  Anchored anchored(dir.path(), "echo b >> " + begun + "; test $(wc -l < " + begun +
                                    ") -lt 3 && kill -KILL $$; echo 0 > " +
                                    (dir.path() / "memory" / "verdict").string());
  EXPECT_EQ(anchored.wait(), 0);
  EXPECT_EQ(text_at(begun), "b\nb\nb\n");
}

TEST(Anchor, GivesUpAMonitorThatNeverLives) {
  const testing::TempDir dir;
  EXPECT_EQ(Anchored(dir.path(), "kill -KILL $$").wait(), exit_code(ErrorKind::internal));
}

TEST(Anchor, KnowsHowRanksEndedThatLostTheirMonitor) {
  const testing::TempDir dir;
  const std::filesystem::path go = dir.path() / "go";
  const std::filesystem::path rank = dir.path() / "rank";
  const std::filesystem::path second = dir.path() / "second";
  Anchored anchored(dir.path(), "test -e " + rank.string() + " && echo > " + second.string() +
                                    " && sleep 1000; "
                                    "setsid sh -c 'echo $$ $(cut -d\" \" -f22 /proc/$$/stat) > " +
                                    rank.string() + "; until test -e " + go.string() +
                                    "; do sleep 0.02; done; kill -SEGV $$' & "
                                    "until test -s " +
                                    rank.string() + "; do sleep 0.02; done; kill -KILL $$");
  ASSERT_TRUE(comes_true([&] { return !text_at(rank).empty(); }));
  ProcessIdentity process;
  std::istringstream(text_at(rank)) >> process.pid >> process.start_ticks;
  // While the first monitor lives, its shell would wait for the rank.
  ASSERT_TRUE(comes_true([&] { return size_if_there(second) >= 0; }));
  replace_file(go, "");
  ASSERT_TRUE(comes_true([&] { return read_end(anchored.folders().ends(), process).has_value(); }));
  EXPECT_EQ(read_end(anchored.folders().ends(), process)->signal, SIGSEGV);
}

TEST(Anchor, TakesOverALivingMonitor) {
  const testing::TempDir dir;
  const std::string script = lines_of_monitor(dir.path()) + "trap 'echo 75 > " +
                             (dir.path() / "memory" / "verdict").string() +
                             "; exit 0' TERM; while true; do sleep 0.02; done";
  Anchored first(dir.path(), script);
  ASSERT_TRUE(comes_true([&] { return size_if_there(first.folders().worker()) > 0; }));
  first.kill(SIGKILL);
  Anchored second(dir.path(), script);
  ASSERT_TRUE(comes_true([&] { return text_at(second.folders().anchor()).size() > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  second.send(SIGTERM);
  EXPECT_EQ(second.wait(), 75);
  EXPECT_EQ(text_at(dir.path() / "memory" / "begun"), "began\n");
}

// The kernel hangs up on stopped processes whose group loses its last parent of the same session.
TEST(Anchor, AStoppedMonitorDoesNotHearOfItsAnchorsEnd) {
  const testing::TempDir dir;
  const std::string heard = (dir.path() / "heard").string();
  Anchored anchored(dir.path(), "trap 'echo hup >> " + heard + "' HUP; trap 'echo usr1 >> " + heard +
                                    "; exit 0' USR1; " + lines_of_monitor(dir.path()) +
                                    "while true; do sleep 0.02; done");
  ASSERT_TRUE(comes_true([&] { return !text_at(dir.path() / "memory" / "begun").empty(); }));
  const std::optional<ProcessIdentity> worker = read_record(anchored.folders().worker(), "node0");
  ASSERT_TRUE(worker);
  ::kill(worker->pid, SIGSTOP);
  anchored.kill(SIGKILL);
  ::kill(worker->pid, SIGUSR1);
  ::kill(worker->pid, SIGCONT);
  ASSERT_TRUE(comes_true([&] { return !is_alive(*worker); }));
  EXPECT_EQ(text_at(heard), "usr1\n");
}

TEST(Anchor, IsOnePerNode) {
  const testing::TempDir dir;
  Anchored first(dir.path(), lines_of_monitor(dir.path()) + "sleep 1000");
  ASSERT_TRUE(comes_true([&] { return size_if_there(first.folders().worker()) > 0; }));
  EXPECT_EQ(Anchored(dir.path(), "exit 0").wait(), exit_code(ErrorKind::user));
  std::optional<ProcessIdentity> worker = read_record(first.folders().worker(), "node0");
  ASSERT_TRUE(worker);
  first.kill(SIGKILL);
  ::kill(-worker->pid, SIGKILL);
}

}  // namespace
}  // namespace megalith::resilience
