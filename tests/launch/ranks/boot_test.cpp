#include "launch/ranks/boot.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "comm/store/socket.h"
#include "expect_error.h"
#include "launch/environment.h"

namespace megalith::launch {
namespace {

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

TEST(Boot, WithoutALauncherARankIsAlone) {
  Boot boot({.environment = lookup_in({})});
  EXPECT_EQ(boot.world().size(), 1);
  EXPECT_EQ(started_ranks(lookup_in({})), 1);
  boot.finish();
  Boot of_one({.environment = lookup_in(rank_of(0, 1, 1))});
  EXPECT_EQ(of_one.world().size(), 1);
}

TEST(Boot, RanksMeetWorkAndLeaveTogether) {
  const int port = free_port();
  const auto errors = run_ranks({rank_of(0, 3, port), rank_of(1, 3, port), rank_of(2, 3, port)}, 60.0, [](Boot& boot) {
    ThreadPool pool(1);
    Stream stream(pool);
    {
      const auto group = boot.world().make_world_group();
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
  std::promise<void> first_has_met;
  const auto errors = run_ranks({rank_of(0, 2, port), rank_of(1, 2, port)}, 1.0, [&](Boot& boot) {
    if (boot.rank() == 1) {
      // One that leaves while the other still connects is named for that.
      first_has_met.get_future().wait_for(std::chrono::seconds(10));
      return;
    }
    first_has_met.set_value();
    boot.finish();
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

}  // namespace
}  // namespace megalith::launch
