#include "comm/store/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "comm/store/packet.h"
#include "comm/store/rendezvous.h"
#include "comm/store/store_table.h"
#include "core/clock.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

StoreClientOptions client_of(const StoreServer& server, int rank = 0) {
  return {.port = server.port(), .rank = rank, .connect_deadline = 10.0};
}

// Until the server closes the connection, or a while has gone by.
bool closed_by_server(const Socket& socket) {
  std::string received;
  const double until = monotonic_seconds() + 15.0;
  while (socket.wait_readable(until)) {
    received.clear();
    if (!socket.read_into(received, 1 << 20)) return true;
  }
  return false;
}

Socket send_raw(const StoreServer& server, std::string bytes) {
  Socket socket = connect_to("127.0.0.1", server.port(), monotonic_seconds() + 5.0);
  while (!bytes.empty() && socket.wait_writable(monotonic_seconds() + 5.0)) {
    if (!socket.write_from(bytes)) break;
  }
  return socket;
}

TEST(Store, KeysAreSetAddedComparedAndDeleted) {
  StoreServer server({});
  StoreClient client(client_of(server));
  client.set("a", "1");
  EXPECT_EQ(client.get("a", 0.0), "1");
  EXPECT_EQ(client.add("a", 41), 42);
  EXPECT_EQ(client.add("fresh", -3), -3);
  EXPECT_EQ(client.compare_and_set("a", "41", "x"), "42");
  EXPECT_EQ(client.compare_and_set("a", "42", "x"), "x");
  EXPECT_EQ(client.compare_and_set("new", "", "y"), "y");
  const std::string binary("\0\n\xff", 3);
  client.set("dir/one", binary);
  client.set("dir/two", "");
  EXPECT_EQ(client.get("dir/two", 0.0), "");
  EXPECT_EQ(client.get("dir/one", 0.0), binary);
  EXPECT_EQ(client.delete_prefix("dir/"), 2);
  expect_parts(error_of(ErrorKind::comm, [&] { client.get("dir/one", 0.05); }), {"'dir/one'", "within 0.1 s"});
  expect_parts(error_of(ErrorKind::comm, [&] { client.add("new", 1); }), {"'new'", "no number"});
}

TEST(Store, AGetWaitsForTheKey) {
  StoreServer server({});
  std::thread writer([&] {
    StoreClient client(client_of(server, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    client.set("late", "here");
  });
  StoreClient client(client_of(server));
  EXPECT_EQ(client.get("late", 10.0), "here");
  writer.join();
}

TEST(Store, CountersOfManyClientsAddUp) {
  StoreServer server({});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 16; ++rank) {
    threads.emplace_back([&, rank] {
      StoreClient client(client_of(server, rank));
      for (int i = 0; i < 50; ++i) client.add("count", 1);
    });
  }
  for (auto& thread : threads) thread.join();
  StoreClient client(client_of(server));
  EXPECT_EQ(client.get("count", 0.0), "800");
}

TEST(Store, AStaleGenerationIsRefused) {
  StoreServer server({.generation = 7});
  StoreClientOptions options = client_of(server, 3);
  options.generation = 5;
  expect_parts(error_of(ErrorKind::comm, [&] { StoreClient client(options); }),
               {"refuses", "rank 3", "generation 5", "at 7"});
}

TEST(Store, AWrongSecretIsRefusedAndNotRepeated) {
  StoreServer server({.secret = "right"});
  StoreClientOptions options = client_of(server, 2);
  for (const char* secret : {"wrong", ""}) {
    options.secret = secret;
    const std::string message = error_of(ErrorKind::comm, [&] { StoreClient client(options); });
    expect_parts(message, {"rank 2", "does not know the secret"});
    EXPECT_EQ(message.find("right"), std::string::npos);
    EXPECT_EQ(message.find("wrong"), std::string::npos);
  }
  options.secret = "right";
  StoreClient client(options);
  client.set("a", "b");
}

TEST(Store, OtherAddressesThanLoopbackNeedASecret) {
  expect_parts(error_of(ErrorKind::user, [] { StoreServer server({.address = "0.0.0.0"}); }), {"0.0.0.0", "secret"});
  StoreServer server({.address = "0.0.0.0", .secret = "s"});
  EXPECT_NE(server.port(), 0);
}

TEST(Store, NobodyThereIsAnErrorAfterTheDeadline) {
  uint16_t port = 0;
  {
    StoreServer server({});
    port = server.port();
  }
  const double begin = monotonic_seconds();
  const auto connect = [&] { StoreClient client({.port = port, .connect_deadline = 0.2}); };
  expect_parts(error_of(ErrorKind::comm, connect), {"nobody answers", std::to_string(port)});
  EXPECT_LT(monotonic_seconds() - begin, 5.0);
  error_of(ErrorKind::user,
           [] { StoreClient client({.host = "no.such.host.invalid", .port = 1, .connect_deadline = 0.2}); });
}

TEST(Store, GarbageDisconnectsItsSenderAndNobodyElse) {
  StoreServer server({});
  StoreClient client(client_of(server));
  const std::vector<std::string> garbage = {
      std::string(100'000, '\xff'),
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string("\x05\0\0\0abcde", 9),
      std::string(kMaxHelloBytes, '\0'),
      encode({.kind = PacketKind::set, .key = "a", .value = "b"}),  // a request before the hello
  };
  for (const auto& bytes : garbage) EXPECT_TRUE(closed_by_server(send_raw(server, bytes)));
  client.set("still", "there");
  EXPECT_EQ(client.get("still", 0.0), "there");
}

TEST(Store, SilentClientsStallNobody) {
  StoreServer server({.hello_deadline = 1.0});
  std::vector<Socket> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(send_raw(server, std::string("\x40\0\0", 3)));
  StoreClient client(client_of(server));
  const double begin = monotonic_seconds();
  for (int i = 0; i < 100; ++i) client.add("n", 1);
  EXPECT_LT(monotonic_seconds() - begin, 20.0);
  EXPECT_TRUE(closed_by_server(silent.front()));
}

int open_descriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<int>(std::distance(begin(descriptors), end(descriptors)));
}

TEST(Store, OfStrangersOnlyAFewAreKept) {
  StoreServer server({.secret = "s", .hello_deadline = 60.0, .expected_clients = 4});
  StoreClientOptions options = client_of(server);
  options.secret = "s";
  StoreClient early(options);
  constexpr int kStrangers = 300;
  const int before = open_descriptors();
  std::vector<Socket> strangers;
  for (int i = 0; i < kStrangers; ++i)
    strangers.push_back(connect_to("127.0.0.1", server.port(), monotonic_seconds() + 10.0));
  // Both ends of a connection are this process's.
  EXPECT_TRUE(closed_by_server(strangers.front()));
  StoreClient late(options);
  EXPECT_LE(open_descriptors() - before, kStrangers + static_cast<int>(StoreServer::kStrangers) + 4 + 2);
  early.set("a", "1");
  EXPECT_EQ(late.get("a", 5.0), "1");
}

TEST(Store, ValuesThatAreTooLargeAreRefused) {
  StoreServer server({});
  StoreClient client(client_of(server));
  const auto set = [&] { client.set("big", std::string(kMaxPacketBytes, 'x')); };
  expect_parts(error_of(ErrorKind::user, set), {"'big'"});
  const std::string large(kMaxPacketBytes / 2, 'x');
  client.set("large", large);
  EXPECT_EQ(client.get("large", 0.0), large);
}

TEST(Store, TheTableIsBounded) {
  StoreTable table;
  const std::string mebibyte(1 << 20, 'x');
  size_t taken = 0;
  while (table.apply({.kind = PacketKind::set, .key = std::to_string(taken), .value = mebibyte})->kind ==
         PacketKind::ok) {
    ++taken;
  }
  EXPECT_EQ(taken, StoreTable::kMaxBytes / mebibyte.size() - 1);
  EXPECT_EQ(table.apply({.kind = PacketKind::set, .key = "0", .value = "small"})->kind, PacketKind::ok);
}

TEST(Packet, SurvivesTheWire) {
  const Packet packet{PacketKind::compare_and_set, -5, "key", std::string("\0v", 2), "expected"};
  std::string bytes = encode(packet);
  std::string begin = bytes.substr(0, bytes.size() - 1);
  EXPECT_EQ(take_packet(begin), std::nullopt);
  bytes += "rest";
  EXPECT_EQ(take_packet(bytes), packet);
  EXPECT_EQ(bytes, "rest");
}

TEST(Rendezvous, EveryRankLearnsWhereTheOthersRun) {
  StoreServer server({});
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      StoreClient client(client_of(server, rank));
      const RankPlace own{fmt::format("host {}", rank), "cpu", 100 + rank, "10.0.0.7"};
      const RankPlaces places = exchange_places(client, rank, 4, own, 10.0);
      right += places.size() == 4 && places[3] == RankPlace{"host 3", "cpu", 103, "10.0.0.7"};
      EXPECT_EQ(number_of_group(client, "tp/0,1,2,3/0", 10.0), 1U);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

// Where a machine's own name leads to loopback, its ranks come to the store that way, and others could not reach them.
TEST(Rendezvous, RanksBesideTheStoreGetAnAddressThatOthersKnow) {
  std::string outward;
  try {
    outward = address_towards("192.0.2.1");
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no way to any other";
  }
  StoreServer server({});
  std::thread other([&] {
    StoreClient client(client_of(server, 1));
    exchange_places(client, 1, 2, place_here("cpu", "192.0.2.1"), 10.0);
  });
  StoreClient client(client_of(server));
  const RankPlaces places = exchange_places(client, 0, 2, place_here("cpu", "127.0.1.1"), 10.0);
  other.join();
  EXPECT_EQ(places[0].address, outward);
  EXPECT_EQ(places[1].address, "192.0.2.1");
}

TEST(Rendezvous, AddressesOfThisMachineAlone) {
  for (const char* address : {"127.0.0.1", "127.0.1.1", "::1"}) EXPECT_TRUE(is_loopback(address)) << address;
  for (const char* address : {"10.0.0.7", "192.0.2.1", "fe80::1"}) EXPECT_FALSE(is_loopback(address)) << address;
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
}

TEST(Rendezvous, NamesTheRanksThatDoNotAppear) {
  StoreServer server({});
  std::vector<std::thread> threads;
  for (const int rank : {0, 2}) {
    threads.emplace_back([&, rank] {
      StoreClient client(client_of(server, rank));
      const auto meet = [&] { exchange_places(client, rank, 4, place_here("cpu", "127.0.0.1"), 0.3); };
      expect_parts(error_of(ErrorKind::comm, meet), {"1, 3"});
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace megalith::comm
