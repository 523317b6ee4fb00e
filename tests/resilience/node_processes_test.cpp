#include "resilience/monitor/node_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/process/status_page.h"
#include "launch/ranks/start_process.h"
#include "resilience/monitor/ends.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

constexpr const char* kRun = "run-1";

NodeFolders folders_in(const testing::TempDir& dir) {
  const NodeFolders folders{.disk = dir.path() / "disk", .memory = dir.path() / "memory"};
  folders.make();
  return folders;
}

NodeProcesses::Start shell(const std::string& script) {
  return {.command = {"/bin/sh", "-c", script}, .environment = {"TOLD=42"}, .secret = "told to nobody else"};
}

bool comes_true(const std::function<bool()>& condition) {
  for (int look = 0; look < 3000 && !condition(); ++look) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

RankReport report_of(const NodeProcesses& processes, const ProcessKey& key) {
  for (const RankReport& report : processes.reports(false)) {
    if (report.rank == key.rank && report.generation == key.generation) return report;
  }
  throw std::runtime_error("no report of " + key.name());
}

bool has_ended(NodeProcesses& processes, const ProcessKey& key) {
  processes.watch(0.0);
  return !processes.is_running(key);
}

TEST(ProcessKey, IsItsName) {
  for (const ProcessKey& key : {ProcessKey{3, 5}, ProcessKey{12, RankReport::kStore}, ProcessKey{1234567, 0}})
    EXPECT_EQ(process_key(key.name()), key) << key.name();
  for (const char* name : {"", "g3", "g-r5", "g3-r", "g3-x5", "h3-r5", "g3-r5.part", "g3-r-5"})
    EXPECT_FALSE(process_key(name)) << name;
}

TEST(NodeProcesses, TellHowOneEnded) {
  const testing::TempDir dir;
  const NodeFolders folders = folders_in(dir);
  NodeProcesses processes(folders, kRun);
  const ProcessKey code{1, 0};
  const ProcessKey signal{1, 1};
  processes.start(code, shell("echo said $TOLD; exit 7"));
  processes.start(signal, shell("kill -SEGV $$"));
  ASSERT_TRUE(comes_true([&] { return has_ended(processes, code) && has_ended(processes, signal); }));
  EXPECT_EQ(report_of(processes, code).end->exit_code, 7);
  EXPECT_EQ(report_of(processes, signal).end, (ProcessEnd{.exit_code = std::nullopt, .signal = SIGSEGV}));
  EXPECT_EQ(read_text(folders.log(code)), "said 42\n");
  EXPECT_TRUE(processes.is_clear_of(1));
}

TEST(NodeProcesses, StartNoneTwice) {
  const testing::TempDir dir;
  const NodeFolders folders = folders_in(dir);
  const ProcessKey key{1, 0};
  {
    NodeProcesses processes(folders, kRun);
    processes.start(key, shell("echo once"));
    ASSERT_TRUE(comes_true([&] { return has_ended(processes, key); }));
    processes.start(key, shell("echo twice"));
  }
  NodeProcesses later(folders, kRun);
  later.start(key, shell("echo thrice"));
  ASSERT_TRUE(comes_true([&] { return has_ended(later, key); }));
  EXPECT_EQ(report_of(later, key).end->exit_code, 0);
  EXPECT_EQ(read_text(folders.log(key)), "once\n");
}

TEST(NodeProcesses, AreFoundAgainAndEnded) {
  const testing::TempDir dir;
  const NodeFolders folders = folders_in(dir);
  const ProcessKey key{4, 2};
  int64_t pid = 0;
  {
    NodeProcesses processes(folders, kRun);
    processes.start(key, shell("sleep 1000"));
    processes.watch(0.0);
    pid = report_of(processes, key).pid;
  }
  NodeProcesses later(folders, kRun);
  later.watch(0.0);
  EXPECT_TRUE(later.is_running(key));
  EXPECT_EQ(report_of(later, key).pid, pid);
  EXPECT_TRUE(later.is_clear_of(3));
  later.kill_up_to(3);
  later.watch(0.0);
  EXPECT_TRUE(later.is_running(key));
  later.kill_up_to(4);
  ASSERT_TRUE(comes_true([&] { return has_ended(later, key); }));
  EXPECT_EQ(report_of(later, key).end->signal, SIGKILL);
  later.forget_before(5);
  EXPECT_TRUE(later.reports(false).empty());
  EXPECT_TRUE(std::filesystem::is_empty(folders.records()));
}

TEST(NodeProcesses, NeverTouchOthers) {
  const testing::TempDir dir;
  const NodeFolders folders = folders_in(dir);
  const pid_t other = ::fork();
  if (other == 0) {
    ::pause();
    ::_exit(0);
  }
  const ProcessIdentity identity = *identify_process(other);
  const ProcessIdentity before{.pid = identity.pid, .start_ticks = identity.start_ticks - 1};
  write_record(folders.record({1, 0}), kRun, before);             // its number is another's now
  write_record(folders.record({1, 1}), "another-run", identity);  // not ours
  write_record(folders.record({1, 2}), kRun, {.pid = 1 << 22, .start_ticks = 1});
  NodeProcesses processes(folders, kRun);
  processes.kill_up_to(9);
  ASSERT_TRUE(comes_true([&] { return has_ended(processes, {1, 0}) && has_ended(processes, {1, 2}); }));
  EXPECT_EQ(report_of(processes, {1, 0}).end, ProcessEnd{});  // nobody knows how
  EXPECT_FALSE(processes.has({1, 1}));
  EXPECT_TRUE(is_alive(identity));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

TEST(NodeProcesses, EndWithTheirGroups) {
  const testing::TempDir dir;
  NodeProcesses processes(folders_in(dir), kRun);
  const ProcessKey key{1, 0};
  const std::filesystem::path child = dir.path() / "child";
  processes.start(key, shell("sleep 1000 & echo $! > " + child.string() + ".part; mv " + child.string() + ".part " +
                             child.string() + "; kill -KILL $$"));
  ASSERT_TRUE(comes_true([&] { return has_ended(processes, key); }));
  const pid_t left = std::stoi(read_text(child));
  EXPECT_TRUE(comes_true([&] {
    const auto identity = identify_process(left);
    return !identity || !is_alive(*identity);
  }));
}

TEST(NodeProcesses, InheritTheirLineAlone) {
  const testing::TempDir dir;
  const NodeFolders folders = folders_in(dir);
  const File open = File::create_new(dir.path() / "open");
  const int shared = ::dup(open.descriptor());  // without close-on-exec
  NodeProcesses processes(folders, kRun);
  processes.start({1, 0}, shell("ls /proc/$$/fd; true"));  // no pipe, which the shell has open for a moment
  ASSERT_TRUE(comes_true([&] { return has_ended(processes, {1, 0}); }));
  ::close(shared);
  const std::string descriptors = read_text(folders.log({1, 0}));
  EXPECT_EQ(std::count(descriptors.begin(), descriptors.end(), '\n'), 4) << descriptors;  // standard ones and the line
}

// It is started, but nobody would find it again.
TEST(StartProcess, GoesWithItsStarterBeforeItHasHeard) {
  const testing::TempDir dir;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const File log = File::create_new(dir.path() / "log");
  const pid_t pid = launch::start_process({.command = {"/bin/sh", "-c", "echo ran"},
                                           .environment = {},
                                           .output = log.descriptor(),
                                           .errors = log.descriptor(),
                                           .line = ends[1],
                                           .is_detached = true});
  ::close(ends[1]);
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), launch::kCannotRun);
  EXPECT_EQ(read_text(dir.path() / "log"), "");
}

TEST(NodeProcesses, ReadPagesOfTheirOwnRanksAlone) {
  const testing::TempDir dir;
  const NodeFolders folders = folders_in(dir);
  NodeProcesses processes(folders, kRun);
  const ProcessKey key{2, 1};
  processes.start(key, shell("sleep 1000"));
  processes.watch(0.0);
  EXPECT_FALSE(report_of(processes, key).page);
  EXPECT_EQ(report_of(processes, key).page_problem, "");
  StatusPage page(folders.page(key), 1, 2);  // by this process, which is not the rank
  page.beat();
  processes.watch(0.0);
  EXPECT_FALSE(report_of(processes, key).page);
  EXPECT_NE(report_of(processes, key).page_problem, "");
  processes.kill_up_to(2);
  EXPECT_TRUE(comes_true([&] { return has_ended(processes, key); }));
}

TEST(Ends, AreReadBack) {
  const testing::TempDir dir;
  const std::filesystem::path ends = dir.path() / "ends";
  EXPECT_FALSE(read_end(ends, {1, 2}));
  write_end(ends, {.process = {10, 77}, .end = {.exit_code = 3, .signal = 0}});
  write_end(ends, {.process = {10, 78}, .end = {.exit_code = std::nullopt, .signal = 9}});
  EXPECT_EQ(read_end(ends, {10, 77}), (ProcessEnd{.exit_code = 3, .signal = 0}));
  EXPECT_EQ(read_end(ends, {10, 78}), (ProcessEnd{.exit_code = std::nullopt, .signal = 9}));
  EXPECT_FALSE(read_end(ends, {10, 79}));
}

}  // namespace
}  // namespace megalith::resilience
