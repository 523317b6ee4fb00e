#include "core/process/process_facts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "core/clock.h"

namespace megalith {
namespace {

// A child that does what it is told until the test is over.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    ::_exit(0);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void sleep_for_ever() {
  while (true) ::pause();
}

// What is asked of the kernel may take it a moment.
bool soon(const std::function<bool()>& condition) {
  for (const double until = monotonic_seconds() + 10.0; monotonic_seconds() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

char state_of(const ProcessIdentity& process) {
  return facts_of(process).value_or(ProcessFacts{}).state;
}

TEST(ProcessFacts, KnowsOneProcessFromALaterOneOfTheSameNumber) {
  const ProcessIdentity self = own_process();
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_GT(self.start_ticks, 0u);
  EXPECT_TRUE(is_alive(self));
  const ProcessIdentity earlier{.pid = self.pid, .start_ticks = self.start_ticks - 1};
  EXPECT_FALSE(is_alive(earlier));
  EXPECT_FALSE(facts_of(earlier));
}

TEST(ProcessFacts, AProcessThatHasEndedIsNotAliveEvenBeforeItIsReaped) {
  const Child child([] {});
  const auto identity = identify_process(child.pid());
  ASSERT_TRUE(identity);
  EXPECT_TRUE(soon([&] { return !is_alive(*identity); }));
  EXPECT_FALSE(facts_of(*identity));
}

TEST(ProcessFacts, NothingIsKnownOfNobody) {
  EXPECT_FALSE(identify_process(0));
  EXPECT_FALSE(identify_process(-1));
  EXPECT_FALSE(is_alive({.pid = 1 << 23, .start_ticks = 1}));
}

TEST(ProcessFacts, TellsAStoppedProcessFromOneThatSleeps) {
  const Child child(sleep_for_ever);
  const ProcessIdentity identity = identify_process(child.pid()).value();
  EXPECT_TRUE(soon([&] { return state_of(identity) == 'S'; }));
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  EXPECT_TRUE(soon([&] { return state_of(identity) == 'T'; }));
}

TEST(ProcessFacts, CountsTheSecondsOfTheProcessor) {
  const Child spinning([] {
    for (std::atomic<int64_t> i = 0;; ++i) {
    }
  });
  const ProcessIdentity identity = identify_process(spinning.pid()).value();
  EXPECT_TRUE(soon([&] { return facts_of(identity).value().cpu_seconds > 0.05; }));
  EXPECT_EQ(state_of(identity), 'R');
}

TEST(ProcessFacts, ShowsEveryThread) {
  const Child child([] {
    std::thread worker([] {
      ::prctl(PR_SET_NAME, "a) (worker");
      sleep_for_ever();
    });
    sleep_for_ever();
  });
  const ProcessIdentity identity = identify_process(child.pid()).value();
  // Beside the main thread; ThreadSanitizer may have one of its own.
  const auto worker_is_there = [&] {
    const std::vector<ThreadFacts> threads = facts_of(identity).value().threads;
    return std::any_of(threads.begin(), threads.end(),
                       [](const ThreadFacts& thread) { return thread.name == "a) (worker" && thread.state == 'S'; });
  };
  ASSERT_TRUE(soon(worker_is_there));
  const ProcessFacts facts = facts_of(identity).value();
  EXPECT_EQ(facts.threads[0].id, child.pid());
  const std::string text = describe(facts);
  EXPECT_NE(text.find("'a) (worker': S"), std::string::npos) << text;
}

}  // namespace
}  // namespace megalith
