#include "launch/boot.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "comm/socket.h"
#include "config/expect_error.h"
#include "launch/self.h"

namespace megalith::launch {
namespace {

using ::megalith::config::expect_parts;
using ::megalith::config::user_error_of;

using Environment = std::map<std::string, std::string>;

config::Lookup lookup_in(Environment environment) {
  return [environment = std::move(environment)](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
}

int free_port() {
  return comm::listen_on("127.0.0.1", 0).local_port();
}

Environment rank_of(int rank, int size, int port) {
  return {{"RANK", std::to_string(rank)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

// Runs one rank per environment, as threads; what each threw, "" where nothing.
template <class Body>
std::vector<std::string> run_ranks(const std::vector<Environment>& ranks, double timeout, Body body) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        Boot boot({.start_timeout = timeout, .communication_timeout = timeout, .environment = lookup_in(ranks[i])});
        body(boot);
      } catch (const Error& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(Boot, WithoutALauncherThereIsNoWorld) {
  Boot boot({.environment = lookup_in({})});
  EXPECT_EQ(boot.world(), nullptr);
  EXPECT_EQ(started_ranks(lookup_in({})), 1);
  boot.finish();
  Boot of_one({.environment = lookup_in(rank_of(0, 1, 1))});
  EXPECT_EQ(of_one.world(), nullptr);
}

TEST(Boot, RanksMeetWorkAndLeaveTogether) {
  const int port = free_port();
  const auto errors = run_ranks({rank_of(0, 3, port), rank_of(1, 3, port), rank_of(2, 3, port)}, 60.0, [](Boot& boot) {
    ThreadPool pool(1);
    Stream stream(pool);
    {
      const auto group = boot.world()->make_world_group();
      double sum = boot.rank();
      group->all_reduce(stream, Tensor(&sum, DType::f64, {1})).wait(stream);
      EXPECT_EQ(sum, 3.0);
    }
    // The last to leave still finds the store.
    if (boot.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    boot.finish();
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(Boot, NamesWhoDidNotAppear) {
  const int port = free_port();
  const auto errors = run_ranks({rank_of(0, 4, port), rank_of(2, 4, port)}, 0.5, [](Boot&) {});
  for (const std::string& error : errors) expect_parts(error, {"of 4 ranks did not appear", ": 1, 3"});
}

TEST(Boot, NamesRankZeroWhereNobodyServes) {
  const auto errors = run_ranks({rank_of(1, 2, free_port())}, 0.2, [](Boot&) {});
  expect_parts(errors[0], {"rank 1 of 2", "could not meet rank 0", "nobody answers"});
}

TEST(Boot, NamesWhoDidNotFinish) {
  const int port = free_port();
  const auto errors = run_ranks({rank_of(0, 2, port), rank_of(1, 2, port)}, 1.0, [](Boot& boot) {
    if (boot.rank() == 0) boot.finish();
  });
  expect_parts(errors[0], {"of 2 ranks were not done", ": 1"});
  EXPECT_EQ(errors[1], "");
}

TEST(Boot, BeyondLoopbackItNeedsASecret) {
  Environment rank = rank_of(0, 2, free_port());
  rank["MASTER_ADDR"] = "node7";
  expect_parts(user_error_of([&] { Boot boot({.environment = lookup_in(rank)}); }),
               {"'node7'", "MEGALITH_STORE_SECRET"});
}

TEST(Boot, StrangersAreRefused) {
  const int port = free_port();
  Environment stale = rank_of(1, 2, port);
  stale["MEGALITH_GENERATION"] = "3";
  Environment first = rank_of(0, 2, port);
  first["MEGALITH_GENERATION"] = "4";
  const auto errors = run_ranks({first, stale}, 0.5, [](Boot&) {});
  expect_parts(errors[0], {"did not appear", ": 1"});
  expect_parts(errors[1], {"generation 3", "4"});
}

TEST(LaunchPlace, OneMachineUnlessALauncherSaysOtherwise) {
  EXPECT_EQ(launch_place(lookup_in({})).machines, 1);
  const LaunchPlace place = launch_place(lookup_in(
      {{"JOB_COMPLETION_INDEX", "2"}, {"NNODES", "4"}, {"MASTER_ADDR", "job-0.job"}, {"MASTER_PORT", "6002"}}));
  EXPECT_EQ(place.machine, 2);
  EXPECT_EQ(place.machines, 4);
  EXPECT_EQ(place.master_address, "job-0.job");
  EXPECT_EQ(place.master_port, 6002);
  expect_parts(user_error_of([] { launch_place(lookup_in(rank_of(1, 2, 1))); }), {"--nproc", "torchrun"});
}

TEST(WithoutNproc, BothSpellingsGo) {
  const std::vector<std::string> rest = {"megalith", "train", "-c", "a.yaml", "b=1"};
  EXPECT_EQ(without_nproc({"megalith", "train", "--nproc", "4", "-c", "a.yaml", "b=1"}), rest);
  EXPECT_EQ(without_nproc({"megalith", "train", "-c", "a.yaml", "--nproc=4", "b=1"}), rest);
}

}  // namespace
}  // namespace megalith::launch
