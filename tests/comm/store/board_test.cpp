#include "comm/store/board.h"

#include <gtest/gtest.h>

#include <thread>

#include "comm/store/packet.h"
#include "comm/store/store.h"
#include "expect_error.h"

namespace megalith::comm {
namespace {

std::string long_text() {
  std::string text(2 * kMaxPacketBytes + 12345, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 + i / 256);
  return text;
}

// What a reader on one board sees of what another rank posts on its own.
void check(Board& writer, Board& reader) {
  EXPECT_FALSE(reader.read("save/1/part").has_value());
  writer.post("save/1/part", "first");
  EXPECT_EQ(reader.read("save/1/part"), "first");
  writer.post("save/1/part", "second");
  EXPECT_EQ(reader.read("save/1/part"), "second");
  writer.post("save/1/empty", "");
  EXPECT_EQ(reader.read("save/1/empty"), "");
  const std::string text = long_text();
  writer.post("save/1/long", text);
  EXPECT_TRUE(reader.read("save/1/long") == text);

  writer.post("save/10/part", "stays");
  writer.remove("save/1/");
  for (const char* key : {"save/1/part", "save/1/empty", "save/1/long"}) EXPECT_FALSE(reader.read(key).has_value());
  EXPECT_EQ(reader.read("save/10/part"), "stays");
}

void check_waiting(Board& writer, Board& reader) {
  const std::string message = error_of(ErrorKind::comm, [&] { reader.await("late", 0.05, "the part of rank 3"); });
  expect_parts(message, {"the part of rank 3", "did not come within"});
  std::thread poster([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    writer.post("late", long_text());
  });
  EXPECT_TRUE(reader.await("late", 30.0, "a text") == long_text());
  poster.join();
}

TEST(Board, OfThreads) {
  LocalBoard board;
  check(board, board);
  check_waiting(board, board);
}

TEST(Board, OverTheStore) {
  const StoreServer server({});
  StoreClient clients[] = {StoreClient({.port = server.port(), .rank = 0}),
                           StoreClient({.port = server.port(), .rank = 1})};
  StoreBoard writer(clients[0]);
  StoreBoard reader(clients[1]);
  check(writer, reader);
  check_waiting(writer, reader);
}

}  // namespace
}  // namespace megalith::comm
