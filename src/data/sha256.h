#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace megalith::data {

// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  // 64 lower-case hexadecimal digits, of everything so far. Nothing can be added afterwards.
  std::string hex();

 private:
  void take_block(const std::byte* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};
  uint64_t bytes_ = 0;
};

}  // namespace megalith::data
