#include "comm/arrivals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/clock.h"

namespace megalith::comm {
namespace {

TEST(Arrivals, NamesWhoIsBehindOrSilent) {
  StoreServer server({});
  StoreClient client({.port = server.port()});
  Arrivals first(client, "tp/0", 0, 4);
  Arrivals second(client, "tp/0", 1, 4);
  Arrivals third(client, "tp/0", 2, 4);
  first.announce(7);
  second.announce(8);
  third.announce(6);
  EXPECT_EQ(first.absent(7, 0.1), (std::vector<int>{2, 3}));
  EXPECT_EQ(Arrivals(client, "dp/0", 0, 2).absent(0, 0.0), (std::vector<int>{1}));
}

TEST(Arrivals, WaitsForThoseWhoAreLate) {
  StoreServer server({});
  StoreClient client({.port = server.port()});
  Arrivals first(client, "tp/0", 0, 2);
  std::thread late([&] {
    StoreClient other({.port = server.port(), .rank = 1});
    Arrivals second(other, "tp/0", 1, 2);
    second.announce(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    second.announce(3);
  });
  EXPECT_TRUE(first.absent(3, 10.0).empty());
  late.join();
}

TEST(Arrivals, EverybodyIsAbsentWhereTheStoreIsGone) {
  auto server = std::make_unique<StoreServer>(StoreServerOptions{});
  StoreClient client({.port = server->port()});
  Arrivals first(client, "tp/0", 0, 3);
  server.reset();
  first.announce(1);
  EXPECT_EQ(first.absent(1, 1.0), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace megalith::comm
