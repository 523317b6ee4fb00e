#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"

namespace megalith::checkpoint {

// XXH3-64, which finds accidents (torn writes, flipped bits), not forgeries. Shown as 16 lower-case hexadecimal digits.
class Digest {
 public:
  static constexpr size_t kHexLength = 16;

  Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  ~Digest();

  void update(std::span<const std::byte> bytes);
  std::string hex() const;
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string digest_of(std::span<const std::byte> bytes);
inline std::string digest_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text)));
}
bool is_digest(std::string_view text);

// What a file must contain: digests of its chunks, so that a part can be read and trusted alone, and one of all of it.
struct FileDigests {
  static constexpr int64_t kChunkBytes = int64_t{16} << 20;

  int64_t bytes = 0;
  std::string whole;                  // digest_of_chunks()
  int64_t chunk_bytes = kChunkBytes;  // the last chunk may be shorter
  std::vector<std::string> chunks;

  bool operator==(const FileDigests&) const = default;
};

// Of a whole file, from those of its chunks in their order.
std::string digest_of_chunks(const std::vector<std::string>& chunks);
FileDigests digests_of(std::span<const std::byte> image, ThreadPool& pool);

}  // namespace megalith::checkpoint
