#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/hash/digest.h"
#include "data/files/mapped_file.h"

namespace megalith::data {

// Thrown where an index file turns out not to hold what was written: whoever has the data builds it again.
class DamagedIndex : public Error {
 public:
  explicit DamagedIndex(const std::string& message) : Error(ErrorKind::data, message) {}
};

// What an index was made from, hashed.
using IndexKey = Hash128;

// Up to four arrays and twelve numbers in a file that knows what it should contain. Little-endian:
//
//   0    8  "MGLINDX1"         40   8 C             152  64  offset and bytes of each of 4 arrays
//   8    8  kind               48   8 file size     216   8  hash of all bytes before this, and of the chunk hashes
//   16  16  key                56  96 numbers       224  8 C hashes (XXH3-64) of the chunks of all arrays
//   32   8  bytes of a chunk
//
// Opening checks the header and the chunk hashes; a chunk is checked when it is first used, so that opening thousands
// of files of many megabytes takes no time and still nothing is believed unseen.
class IndexFile {
 public:
  static constexpr size_t kNumbers = 12;
  static constexpr size_t kArrays = 4;
  using Numbers = std::array<int64_t, kNumbers>;
  using Arrays = std::array<std::span<const std::byte>, kArrays>;

  // Throws DamagedIndex if the file is not whole, or not of this kind and key; an I/O error if it cannot be read.
  IndexFile(const std::filesystem::path& path, uint64_t kind, const IndexKey& key);

  const Numbers& numbers() const { return numbers_; }
  // The bytes of an array as they lie in the file: verify() the part that is used.
  std::span<const std::byte> array(size_t which) const { return arrays_[which]; }
  // Throws DamagedIndex if a chunk that holds any of these bytes is not as written. Thread-safe.
  void verify(const void* begin, size_t bytes) const;

  // Writes beside `path` and renames. Nothing is synced: after a crash the hashes tell what was lost.
  static void write(const std::filesystem::path& path, uint64_t kind, const IndexKey& key, const Numbers& numbers,
                    const Arrays& arrays);

 private:
  struct Header;
  [[noreturn]] void damaged(const std::string& why) const;

  std::filesystem::path path_;
  MappedFile file_;
  Numbers numbers_{};
  Arrays arrays_{};
  std::array<size_t, kArrays> first_chunk_{};
  std::span<const std::byte> chunk_hashes_;
  mutable std::vector<std::atomic<bool>> verified_;
};

}  // namespace megalith::data
