#include "checkpoint/format/verified_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "core/error.h"
#include "expect_error.h"

namespace megalith::checkpoint {
namespace {

constexpr int64_t kChunk = int64_t{9} << 20;  // more than is read at a time
constexpr int64_t kBytes = 2 * kChunk + 12345;

std::vector<std::byte> random_bytes() {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(kBytes);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

FileDigests digests_by_hand(std::span<const std::byte> bytes) {
  FileDigests digests{.bytes = kBytes, .whole = {}, .chunk_bytes = kChunk, .chunks = {}};
  for (int64_t begin = 0; begin < kBytes; begin += kChunk) {
    const auto chunk = bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(std::min(kChunk, kBytes - begin)));
    digests.chunks.push_back(digest_of(chunk));
  }
  digests.whole = digest_of_chunks(digests.chunks);
  return digests;
}

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return std::ssize(bytes_); }
  void read_at(int64_t offset, std::span<std::byte> into) override {
    if (ends_at >= 0 && offset + std::ssize(into) > ends_at) data_error("the source ends at {}", ends_at);
    std::copy_n(bytes_.begin() + offset, into.size(), into.begin());
    bytes_read += std::ssize(into);
  }

  int64_t ends_at = -1;
  std::atomic<int64_t> bytes_read = 0;

 private:
  std::span<const std::byte> bytes_;
  std::string name_ = "memory";
};

class VerifiedBytesTest : public ::testing::Test {
 protected:
  VerifiedBytes open() {
    auto source = std::make_unique<MemorySource>(bytes_);
    source_ = source.get();
    return VerifiedBytes(std::move(source), digests_);
  }
  std::vector<std::byte> expected(int64_t begin, int64_t end) const {
    return {bytes_.begin() + begin, bytes_.begin() + end};
  }
  static std::vector<std::byte> read(VerifiedBytes& verified, int64_t begin, int64_t end) {
    std::vector<std::byte> into(static_cast<size_t>(end - begin));
    verified.read_at(begin, into);
    return into;
  }

  std::vector<std::byte> bytes_ = random_bytes();
  const FileDigests digests_ = digests_by_hand(bytes_);
  MemorySource* source_ = nullptr;
};

TEST_F(VerifiedBytesTest, AnyStretchComesAsItIs) {
  VerifiedBytes verified = open();
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{0, kBytes},
                                                                           {1, 2},
                                                                           {kChunk - 1, kChunk + 1},
                                                                           {kChunk, 2 * kChunk},
                                                                           {3, kBytes - 3},
                                                                           {2 * kChunk, kBytes},
                                                                           {5, 5}}) {
    EXPECT_TRUE(read(verified, begin, end) == expected(begin, end)) << begin << " to " << end;
  }
}

TEST_F(VerifiedBytesTest, FrontToBackNothingIsReadTwice) {
  VerifiedBytes verified = open();
  const int64_t middle = kChunk + 1000;
  EXPECT_TRUE(read(verified, 0, middle) == expected(0, middle));
  EXPECT_TRUE(read(verified, middle, kBytes) == expected(middle, kBytes));
  EXPECT_EQ(source_->bytes_read, kBytes);
}

TEST_F(VerifiedBytesTest, WhatWasReadComesAgain) {
  VerifiedBytes verified = open();
  const int64_t middle = kChunk + 1000;
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{
           {kChunk, middle}, {kChunk, middle}, {middle - 1, middle + 1}, {0, kBytes}, {kChunk, middle}, {0, middle}}) {
    EXPECT_TRUE(read(verified, begin, end) == expected(begin, end)) << begin << " to " << end;
  }
}

TEST_F(VerifiedBytesTest, ADamagedChunkIsNamedWhereverItsDamageIs) {
  for (const int64_t at : {kChunk, kChunk + 5'000'000, 2 * kChunk - 1}) {
    bytes_[static_cast<size_t>(at)] ^= std::byte{0x10};
    VerifiedBytes verified = open();
    const std::string where = fmt::format("bytes {} to {}", kChunk, 2 * kChunk);
    expect_error(ErrorKind::data, {"memory is damaged", where}, [&] { read(verified, 0, kBytes); });
    expect_error(ErrorKind::data, {"memory is damaged", where}, [&] { read(verified, kChunk + 7, kChunk + 8); });
    expect_error(ErrorKind::data, {"memory is damaged", where}, [&] { verified.verify(1, 2); });
    EXPECT_TRUE(read(verified, 0, kChunk) == expected(0, kChunk));
    EXPECT_TRUE(read(verified, 2 * kChunk, kBytes) == expected(2 * kChunk, kBytes));
    bytes_[static_cast<size_t>(at)] ^= std::byte{0x10};
  }
}

TEST_F(VerifiedBytesTest, ASourceThatFailsHalfWayIsHeard) {
  VerifiedBytes verified = open();
  source_->ends_at = kChunk + 1000;
  expect_error(ErrorKind::data, {"the source ends at"}, [&] { read(verified, 0, kBytes); });
  source_->ends_at = -1;
  EXPECT_TRUE(read(verified, 0, kBytes) == expected(0, kBytes));
}

TEST_F(VerifiedBytesTest, AnotherSizeIsRefused) {
  bytes_.pop_back();
  expect_error(ErrorKind::data, {"memory has", "its manifest says"}, [&] { open(); });
}

TEST(Digests, DoNotDependOnTheNumberOfThreads) {
  std::vector<std::byte> image = random_bytes();
  image.resize(static_cast<size_t>(2 * FileDigests::kChunkBytes + 1), std::byte{3});
  ThreadPool alone(1);
  ThreadPool several(3);
  const FileDigests digests = digests_of(image, alone);
  EXPECT_EQ(digests, digests_of(image, several));
  ASSERT_EQ(digests.chunks.size(), 3u);
  EXPECT_EQ(digests.chunks[2], digest_of(std::span(image).last(1)));
  EXPECT_EQ(digests.whole, digest_of_chunks(digests.chunks));
  EXPECT_TRUE(digests_of({}, alone).chunks.empty());
}

}  // namespace
}  // namespace megalith::checkpoint
