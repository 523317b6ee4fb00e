#include "data/prepare/read/byte_source.h"

#include <gtest/gtest.h>

#include "data/prepare/prepare_testing.h"

namespace megalith::data {
namespace {

std::string made_up_text(size_t bytes) {
  std::string text;
  uint32_t state = 1;
  while (text.size() < bytes) {
    state = state * 1664525u + 1013904223u;
    text += "word" + std::to_string(state >> 20) + (state % 7 == 0 ? "\n" : " ");
  }
  return text;
}

class ByteSourceTest : public ::testing::Test {
 protected:
  std::string read(const std::string& bytes, const std::string& name = "file", ReadOptions options = {},
                   size_t piece = 10'007) {
    write_bytes(directory_ / name, bytes);
    const auto source = open_byte_source(directory_ / name, options);
    std::string text;
    for (;;) {
      std::string buffer(piece, '\0');
      const size_t count = source->read(buffer);
      if (count == 0) break;
      text.append(buffer, 0, count);
    }
    EXPECT_EQ(source->consumed(), std::ssize(bytes));
    EXPECT_EQ(source->read(std::span<char>(text)), 0u);  // and stays at the end
    return text;
  }

  void expect_damage(const std::string& bytes, const std::vector<std::string>& pieces,
                     const std::string& name = "file") {
    auto all = pieces;
    all.push_back(name);
    all.push_back("byte");
    expect_error(ErrorKind::data, all, [&] { read(bytes, name); });
  }

  TempDir directory_;
  std::string text_ = made_up_text(300'000);
};

TEST_F(ByteSourceTest, ContentDecidesNotTheName) {
  for (const char* name : {"a", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst"}) {
    EXPECT_EQ(read(gzip_of(text_), name), text_) << name;
    EXPECT_EQ(read(zstd_of(text_), name), text_) << name;
  }
  EXPECT_EQ(read(text_, "a.txt"), text_);
  EXPECT_EQ(read("", "a.txt"), "");
  EXPECT_EQ(read("x", "a.txt"), "x");
  expect_damage(text_, {"gzip"}, "plain.gz");
  expect_damage(text_, {"zstd"}, "plain.zst");
  expect_error(ErrorKind::data, {"empty.zst", "empty"}, [&] { read("", "empty.zst"); });
}

TEST_F(ByteSourceTest, SeveralMembersOrFramesAreOneText) {
  EXPECT_EQ(read(gzip_of(text_) + gzip_of("") + gzip_of("tail")), text_ + "tail");
  EXPECT_EQ(read(zstd_of(text_) + zstd_of("") + zstd_of("tail", {.checksum = true})), text_ + "tail");
  const std::string skip = skippable_frame("index of something");
  EXPECT_EQ(read(skip + zstd_of("a") + skip + skippable_frame("") + zstd_of("b") + skip), "ab");
  EXPECT_EQ(read(zstd_of(text_, {.content_size = false})), text_);
}

TEST_F(ByteSourceTest, BlocksOfAnySizeGiveTheSame) {
  for (const int64_t block : {1, 2, 7, 4096}) {
    for (const size_t piece : {size_t{1}, size_t{65'536}}) {
      const std::string text = text_.substr(0, 20'000);
      EXPECT_EQ(read(zstd_of(text) + zstd_of("b"), "z", {.block_bytes = block}, piece), text + "b");
      EXPECT_EQ(read(gzip_of(text) + gzip_of("b"), "g", {.block_bytes = block}, piece), text + "b");
    }
  }
}

TEST_F(ByteSourceTest, TruncationIsFoundAtEveryByte) {
  const std::string zstd = zstd_of(text_.substr(0, 300), {.checksum = true}) + zstd_of("second");
  const size_t first = zstd_of(text_.substr(0, 300), {.checksum = true}).size();
  for (size_t size = 5; size < zstd.size(); ++size) {
    if (size != first) expect_damage(zstd.substr(0, size), {"cut off"});
  }
  const std::string gzip = gzip_of(text_.substr(0, 300));
  for (size_t size = 3; size < gzip.size(); ++size) expect_damage(gzip.substr(0, size), {"cut off"});
}

TEST_F(ByteSourceTest, CorruptionAndTrailingBytesAreFound) {
  std::string zstd = zstd_of(text_, {.checksum = true});
  zstd[zstd.size() / 2] = static_cast<char>(zstd[zstd.size() / 2] ^ 0x55);
  expect_damage(zstd, {"zstd"});
  zstd = zstd_of(text_, {.checksum = true});
  zstd.back() = static_cast<char>(zstd.back() ^ 1);
  expect_damage(zstd, {"zstd", "checksum"});
  expect_damage(zstd_of(text_) + "garbage behind it", {"zstd"});
  expect_damage(zstd_of(text_) + "x", {"zstd"});
  std::string gzip = gzip_of(text_);
  gzip[gzip.size() / 2] = static_cast<char>(gzip[gzip.size() / 2] ^ 0x55);
  expect_damage(gzip, {"gzip"});
  gzip = gzip_of(text_);
  gzip[gzip.size() - 6] = static_cast<char>(gzip[gzip.size() - 6] ^ 1);
  expect_damage(gzip, {"gzip"});
  expect_damage(gzip_of(text_) + "garbage", {"gzip"});
}

TEST_F(ByteSourceTest, LargeWindowsNeedTheOption) {
  // A header alone asks for the window: magic, descriptor without content size, window 2^31; one empty last block.
  const std::string frame("\x28\xB5\x2F\xFD\x00\xA8\x01\x00\x00", 9);
  expect_damage(frame, {"--zstd-window-log"});
  EXPECT_EQ(read(frame, "long.zst", {.zstd_window_log = 31}), "");
}

TEST_F(ByteSourceTest, DictionaryFramesAreRefused) {
  // By hand: magic, descriptor (single segment, dictionary id of one byte), id 7, content size 0, one empty last block.
  const std::string frame("\x28\xB5\x2F\xFD\x21\x07\x00\x01\x00\x00", 10);
  expect_damage(frame, {"ictionary"});
}

}  // namespace
}  // namespace megalith::data
