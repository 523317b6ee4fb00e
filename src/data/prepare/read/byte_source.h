#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace megalith::data {

struct ReadOptions {
  // The largest window of a zstd frame, as a power of two; memory of that size is taken per open file when a frame asks
  // for it. 27 is libzstd's own limit; files made with `zstd --long=31` need 31.
  int zstd_window_log = 27;
  int64_t block_bytes = int64_t{4} << 20;  // one read of the file
};

// The text of a file, front to back, decompressed where it is compressed.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills up to into.size() bytes and returns how many; 0 only at the end. Truncation, corruption and anything behind
  // the compressed data are data errors that name the file and the byte in it.
  virtual size_t read(std::span<char> into) = 0;
  // Bytes of the file itself that have been used.
  virtual int64_t consumed() const = 0;
};

// What the file holds is told by its first bytes. A name that ends in .gz or .zst promises compression: content without
// it is a data error.
std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace megalith::data
