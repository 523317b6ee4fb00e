#include "launch/ranks/store_process.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>

#include "comm/store/store.h"
#include "core/clock.h"
#include "core/process/stop_signals.h"
#include "expect_error.h"

namespace megalith::launch {
namespace {

// Both ends of a line, with the secret on its way.
struct Line {
  Line() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) io_error_errno("socketpair");
    starter.emplace(ends[0]);
    starter->send_secret("the secret");
    of_store = ends[1];
  }
  std::optional<LauncherLine> starter;
  int of_store = -1;
};

class StoreProcess : public ::testing::Test {
 protected:
  ~StoreProcess() override { stop_signals::give_back(); }

  void serve(const StorePatience& patience) {
    served_ = std::async(std::launch::async,
                         [this, patience] { serve_store(LauncherLine::inherit(line_.of_store), patience); });
  }
  comm::StoreClient client(int64_t generation, const std::string& secret = "the secret") const {
    return comm::StoreClient({.port = static_cast<uint16_t>(port_), .generation = generation, .secret = secret});
  }
  bool ends_within(double seconds) {
    return served_.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  }
  void start(const StorePatience& patience) {
    ask_for_store(*line_.starter, {.generation = 4, .ranks = 2});
    serve(patience);
    port_ = port_of_store(*line_.starter, 10.0).value();
  }

  Line line_;
  int port_ = 0;
  std::future<void> served_;
};

TEST_F(StoreProcess, ServesTheRanksOfItsGenerationUntilItIsTold) {
  start({});
  {
    comm::StoreClient first = client(4);
    comm::StoreClient second = client(4);
    first.set("key", "value");
    EXPECT_EQ(second.get("key", 5.0), "value");
  }
  expect_error(ErrorKind::comm, {"generation 3"}, [&] { client(3); });
  expect_error(ErrorKind::comm, {"secret"}, [&] { client(4, "another"); });
  EXPECT_FALSE(ends_within(0.3));
  line_.starter->send(1);
  EXPECT_TRUE(ends_within(10.0));
  served_.get();
}

TEST_F(StoreProcess, OutlivesItsStarterAndEndsWithItsLastRank) {
  start({.left = 0.2, .lonely = 60.0});
  {
    const comm::StoreClient rank = client(4);
    line_.starter.reset();
    EXPECT_FALSE(ends_within(0.5));
  }
  EXPECT_TRUE(ends_within(10.0));
}

TEST_F(StoreProcess, EndsWhereItsStarterIsGoneAndNobodyComes) {
  start({.left = 0.0, .lonely = 0.2});
  EXPECT_FALSE(ends_within(0.5)) << "its starter is there";
  line_.starter.reset();
  EXPECT_TRUE(ends_within(10.0));
}

TEST_F(StoreProcess, RefusesARequestThatIsNone) {
  line_.starter->send_text("-1 2 127.0.0.1");
  serve({});
  expect_error(ErrorKind::user, {"has not said whom to serve"}, [&] { served_.get(); });
}

}  // namespace
}  // namespace megalith::launch
