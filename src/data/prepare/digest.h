#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace megalith::data {

// XXH3, 64 bits, of bytes that come piece by piece. A copy goes on from where it was made.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest& other);
  Digest& operator=(const Digest& other);

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string hex() const;  // 16 digits, of everything so far

 private:
  XXH3_state_s* state_;
};

std::string digest_of(std::string_view text);

}  // namespace megalith::data
