#pragma once

#include <filesystem>
#include <vector>

#include "core/file.h"
#include "core/hash/digest.h"
#include "data/prepare/write/shard_index.h"

namespace megalith::data {

// An `.idx` file being written front to back.
class IndexStream {
 public:
  IndexStream(const std::filesystem::path& path, TokenType type, int64_t sequences, int64_t documents);

  template <class T>
  void put(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    buffer_.insert(buffer_.end(), raw, raw + sizeof(T));
    if (buffer_.size() >= kBuffer) flush();
  }
  // Checks that as much was put as the header promised.
  WrittenFile finish();

 private:
  static constexpr size_t kBuffer = size_t{1} << 20;
  void flush();

  File file_;
  int64_t promised_;
  std::vector<std::byte> buffer_;
  Digest digest_;
  int64_t bytes_ = 0;
};

}  // namespace megalith::data
