#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include "comm/collective_cases.h"
#include "comm/processes.h"
#include "core/clock.h"
#include "core/device.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

const std::string kNoGpu = "no GPU";

// Only children touch CUDA: it does not survive a fork.
std::unique_ptr<World> join_on_one_gpu(const JoinOptions& options) {
  if (find_accelerators().empty()) throw Error(ErrorKind::user, kNoGpu);
  // Ranks that share a card must look like ranks on different hosts to NCCL.
  ::setenv("NCCL_HOSTID", std::to_string(options.rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  ::setenv("NCCL_IB_DISABLE", "1", 1);
  return join_nccl(options);
}

std::vector<Outcome> run_on_one_gpu(ProcessRun run) {
  run.join = join_on_one_gpu;
  return run_processes(run);
}

class Gpus : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Nccl, Gpus, testing::Values(1, 2, 4));

TEST_P(Gpus, EveryCollectiveOfEveryTypeAndSize) {
  const auto outcomes = run_on_one_gpu({.ranks = GetParam(), .body = [](World& world) {
                                          check_world(world);
                                          world.throw_if_failed();
                                          return std::string("done");
                                        }});
  if (outcomes.front().text == kNoGpu) GTEST_SKIP() << kNoGpu;
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.text, "done");
}

// Waits on the host until the watchdog has seen the failure; its message, behind the seconds that took.
std::string awaited_failure(World& world, Communicator& group, double deadline) {
  TestStream stream(Device::cuda);
  Values values(DType::f32, 1000, Device::cuda);
  const double begin = monotonic_seconds();
  try {
    while (monotonic_seconds() < begin + 60.0) {
      group.all_reduce(stream, values.tensor(), Reduction::sum, deadline).wait(stream);
      static_cast<Stream&>(stream).wait();
      world.throw_if_failed();
    }
  } catch (const Error& error) {
    return fmt::format("{:.1f} {}", monotonic_seconds() - begin, error.what());
  }
  return "0 no failure";
}

TEST(Nccl, AStoppedRankIsNamedAfterTheDeadline) {
  const auto outcomes = run_on_one_gpu({.ranks = 3,
                                        .body =
                                            [](World& world) {
                                              const auto group = world.make_world_group();
                                              if (world.rank() == 1) ::raise(SIGSTOP);
                                              return awaited_failure(world, *group, 3.0);
                                            },
                                        .meanwhile =
                                            [](const std::vector<pid_t>& processes) {
                                              await_end(processes[0]);
                                              await_end(processes[2]);
                                              ::kill(processes[1], SIGKILL);
                                            }});
  if (outcomes.front().text == kNoGpu) GTEST_SKIP() << kNoGpu;
  for (const size_t rank : {0U, 2U}) {
    expect_parts(outcomes[rank].text, {"group 'world'", "all_reduce #", "rank 1 ("});
    EXPECT_LT(std::stod(outcomes[rank].text), 30.0);
  }
}

}  // namespace
}  // namespace megalith::comm
