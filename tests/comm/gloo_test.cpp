#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "comm/collective_cases.h"
#include "comm/local/local_world.h"
#include "comm/processes.h"
#include "core/clock.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

class Processes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Gloo, Processes, testing::Values(1, 2, 3, 4, 5));

TEST_P(Processes, EveryCollectiveOfEveryTypeAndSize) {
  const auto outcomes = run_processes({.ranks = GetParam(), .body = [](World& world) {
                                         check_world(world);
                                         return std::string("done");
                                       }});
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.text, "done");
}

std::string awkward_sums(World& world) {
  const auto group = world.make_world_group();
  std::string all;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const std::byte byte : sum_of_awkward_values(*group, dtype, 1003)) all += static_cast<char>(byte);
  }
  return all;
}

TEST_P(Processes, SumsAreTheBitsThatThreadsGet) {
  std::string of_threads;
  run_local_ranks(GetParam(), [&](World& world) {
    std::string sums = awkward_sums(world);
    if (world.rank() == 0) of_threads = std::move(sums);
  });
  for (const Outcome& outcome : run_processes({.ranks = GetParam(), .body = awkward_sums})) {
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.text, of_threads);
  }
}

// The message of the failure of an all_reduce of a group "dp" of all ranks, and how long it took.
std::string failing_all_reduce(World& world, int64_t elements, double deadline) {
  CpuStream stream;
  std::vector<int> ranks;
  for (int rank = 0; rank < world.size(); ++rank) ranks.push_back(rank);
  const auto group = world.make_group("dp", ranks);
  group->barrier(stream).wait(stream);
  Values values(DType::f32, elements);
  const double begin = monotonic_seconds();
  try {
    while (true) group->all_reduce(stream, values.tensor(), Reduction::sum, deadline).wait(stream);
  } catch (const Error& error) {
    return fmt::format("{:.1f} {}", monotonic_seconds() - begin, error.what());
  }
}

void expect_named(const Outcome& outcome, const std::string& rank, double at_most) {
  EXPECT_TRUE(outcome.ok());
  EXPECT_LT(std::stod(outcome.text), at_most);
  expect_parts(outcome.text, {"group 'dp'", "all_reduce #", rank + " ("});
}

TEST(Gloo, AMissingRankIsNamedAfterTheDeadline) {
  const auto outcomes =
      run_processes({.ranks = 4, .body = [](World& world) {
                       CpuStream stream;
                       const auto group = world.make_world_group();
                       group->barrier(stream).wait(stream);
                       if (world.rank() == 2) {
                         sleep_seconds(2.5);
                         return std::string();
                       }
                       return error_of(ErrorKind::comm, [&] { group->barrier(stream, 1.0).wait(stream); });
                     }});
  for (const int rank : {0, 1, 3}) {
    expect_parts(outcomes[static_cast<size_t>(rank)].text,
                 {"group 'world' of 4 ranks", "barrier #1", "within 1.0 s: rank 2 (", "did not arrive"});
  }
}

// As a rule at once; Gloo forgets a send whose first write fails (UnboundBuffer::waitSend), and then at the deadline.
TEST(Gloo, AKilledRankIsNamed) {
  const auto outcomes = run_processes({.ranks = 4,
                                       .body = [](World& world) { return failing_all_reduce(world, 100'000, 5.0); },
                                       .meanwhile =
                                           [](const std::vector<pid_t>& processes) {
                                             sleep_seconds(0.7);
                                             ::kill(processes[2], SIGKILL);
                                           }});
  EXPECT_TRUE(WIFSIGNALED(outcomes[2].status));
  for (const int rank : {0, 1, 3}) expect_named(outcomes[static_cast<size_t>(rank)], "rank 2", 20.0);
}

// A library that writes to the socket of a rank that is gone would otherwise end this one without a word.
TEST(Gloo, ABrokenPipeEndsNoRank) {
  const auto outcomes = run_processes({.ranks = 2, .body = [](World& world) {
                                         ::raise(SIGPIPE);
                                         // A rank that ends before the other has connected would be an error there.
                                         CpuStream stream;
                                         world.make_world_group()->barrier(stream).wait(stream);
                                         return std::string("lives");
                                       }});
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.text, "lives");
}

TEST(Gloo, AStoppedRankIsNamedAfterTheDeadline) {
  const auto outcomes = run_processes({.ranks = 3,
                                       .body = [](World& world) { return failing_all_reduce(world, 1000, 1.0); },
                                       .meanwhile =
                                           [](const std::vector<pid_t>& processes) {
                                             sleep_seconds(0.7);
                                             ::kill(processes[1], SIGSTOP);
                                             await_end(processes[0]);
                                             await_end(processes[2]);
                                             ::kill(processes[1], SIGKILL);
                                           }});
  for (const int rank : {0, 2}) expect_named(outcomes[static_cast<size_t>(rank)], "rank 1", 10.0);
}

TEST(Gloo, ManyProcessesStartQuickly) {
  const double begin = monotonic_seconds();
  const auto outcomes = run_processes({.ranks = 64, .body = [](World& world) {
                                         CpuStream stream;
                                         const auto group = world.make_world_group();
                                         group->barrier(stream).wait(stream);
                                         return std::string("here");
                                       }});
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.text, "here");
  EXPECT_LT(monotonic_seconds() - begin, 30.0);
}

}  // namespace
}  // namespace megalith::comm
