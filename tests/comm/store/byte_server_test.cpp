#include "comm/store/byte_server.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 1000);
  return bytes;
}

ByteServer::Read read_from(const std::vector<std::byte>& bytes) {
  return [&bytes](int64_t offset, std::span<std::byte> into) {
    std::memcpy(into.data(), bytes.data() + offset, into.size());
  };
}

TEST(ByteServer, GivesWhatIsOfferedToSeveralAtOnce) {
  const std::vector<std::byte> bytes = some_bytes(5'000'000);
  ByteServer server("127.0.0.1");
  server.offer("shard", std::ssize(bytes), read_from(bytes));
  std::vector<std::thread> threads;
  for (int64_t reader = 0; reader < 4; ++reader) {
    threads.emplace_back([&, reader] {
      ByteReader client(server.address(), "rank 1", 10.0);
      for (const int64_t offset : {int64_t{0}, 1234 * reader, std::ssize(bytes) - 1}) {
        std::vector<std::byte> read(bytes.size() - static_cast<size_t>(offset));
        client.read("shard", offset, read);
        EXPECT_TRUE(std::equal(read.begin(), read.end(), bytes.begin() + offset));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ByteServer, OfStrangersOnlyAFewAreKept) {
  const std::vector<std::byte> bytes = some_bytes(1000);
  ByteServer server("127.0.0.1");
  server.offer("shard", std::ssize(bytes), read_from(bytes));
  std::vector<Socket> strangers;
  for (int i = 0; i < 300; ++i)
    strangers.push_back(connect_to("127.0.0.1", server.address().port, monotonic_seconds() + 10.0));
  const double begin = monotonic_seconds();
  ByteReader client(server.address(), "rank 1", 10.0);
  std::vector<std::byte> read(1000);
  client.read("shard", 0, read);
  EXPECT_EQ(read, bytes);
  std::string received;
  while (strangers.front().wait_readable(begin + 10.0) && strangers.front().read_into(received, 1 << 20)) {
  }
  EXPECT_LT(monotonic_seconds() - begin, 4.0) << "long before it is too late to say hello";
}

TEST(ByteServer, SaysWhyItDoesNotGive) {
  const std::vector<std::byte> bytes = some_bytes(1000);
  ByteServer server("127.0.0.1");
  server.offer("shard", std::ssize(bytes), read_from(bytes));
  server.offer("broken", 1000, [](int64_t, std::span<std::byte>) { fail(ErrorKind::io, "the disk is gone"); });
  ByteReader client(server.address(), "rank 1", 10.0);
  std::vector<std::byte> read(1000);
  const auto refusal = [&](const std::string& name, int64_t offset) {
    return error_of(ErrorKind::comm, [&] { client.read(name, offset, read); });
  };
  expect_parts(refusal("other", 0), {"rank 1 does not give other", "not, or no longer, offered"});
  expect_parts(refusal("shard", 1), {"not that long"});
  expect_parts(refusal("shard", -1), {"not that long"});
  expect_parts(refusal("shard", INT64_MAX), {"not that long"});
  expect_parts(refusal("broken", 0), {"the disk is gone"});
  client.read("shard", 0, read);
  EXPECT_EQ(read, bytes);
  server.withdraw("shard");
  expect_parts(refusal("shard", 0), {"no longer"});
}

TEST(ByteServer, RefusesWhoDoesNotKnowTheSecret) {
  ByteServer server("127.0.0.1");
  ByteServerAddress address = server.address();
  address.secret.back() ^= 1;
  expect_parts(error_of(ErrorKind::comm, [&] { ByteReader(address, "rank 1", 10.0); }), {"rank 1 refuses", "secret"});
}

TEST(ByteServer, NonsenseEndsAConnectionAndNothingElse) {
  const std::vector<std::byte> bytes = some_bytes(10);
  ByteServer server("127.0.0.1");
  server.offer("shard", 10, read_from(bytes));
  const ByteServerAddress address = server.address();
  for (const std::string& nonsense : {std::string(100'000, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    PacketStream stream(connect_to(address.address, address.port, monotonic_seconds() + 5.0), "the server");
    const std::string sent = nonsense;
    stream.write_bytes(std::as_bytes(std::span(sent)), monotonic_seconds() + 5.0);
    error_of(ErrorKind::comm, [&] {
      while (true) stream.read(monotonic_seconds() + 5.0);
    });
  }
  ByteReader client(address, "rank 1", 10.0);
  std::vector<std::byte> read(10);
  client.read("shard", 0, read);
  EXPECT_EQ(read, bytes);
}

TEST(ByteServer, AServerThatIsGoneIsNoticed) {
  const std::vector<std::byte> bytes = some_bytes(10);
  auto server = std::make_unique<ByteServer>("127.0.0.1");
  server->offer("shard", 10, read_from(bytes));
  const ByteServerAddress address = server->address();
  ByteReader client(address, "rank 1", 5.0);
  server.reset();
  std::vector<std::byte> read(10);
  expect_parts(error_of(ErrorKind::comm, [&] { client.read("shard", 0, read); }), {"rank 1"});
  expect_parts(error_of(ErrorKind::comm, [&] { client.read("shard", 0, read); }), {"rank 1", "lost before"});
  expect_parts(error_of(ErrorKind::comm, [&] { ByteReader(address, "rank 1", 0.2); }), {"nobody answers"});
}

}  // namespace
}  // namespace megalith::comm
