#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace megalith {

// XXH3, which finds accidents (torn writes, flipped bits), not forgeries: for those see core/hash/crypto.h.

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
inline uint64_t hash64(std::string_view text) {
  return hash64(std::as_bytes(std::span(text)));
}

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;

  std::string hex() const;
  bool operator==(const Hash128&) const = default;
};

Hash128 hash128(std::span<const std::byte> bytes);
inline Hash128 hash128(std::string_view text) {
  return hash128(std::as_bytes(std::span(text)));
}

// hash64() of bytes that come piece by piece. A copy goes on from where it was made.
class Digest {
 public:
  static constexpr size_t kHexLength = 16;

  Digest();
  ~Digest();
  Digest(const Digest& other);
  Digest& operator=(const Digest& other);

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string hex() const;  // of everything so far

 private:
  XXH3_state_s* state_;
};

// hash64() as digests are written down: kHexLength lower-case hexadecimal digits.
std::string digest_of(std::span<const std::byte> bytes);
inline std::string digest_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text)));
}
bool is_digest(std::string_view text);

}  // namespace megalith
