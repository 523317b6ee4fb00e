#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace megalith {

// SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  // 64 lower-case hexadecimal digits, of everything so far. Nothing can be added afterwards.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> state_;
};

// HMAC-SHA256, 32 bytes: what only somebody who knows the key can say about the text.
std::string keyed_hash(std::string_view key, std::string_view text);

// Takes the same time wherever two texts of one length differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// From the kernel's generator.
std::string random_bytes(size_t count);

}  // namespace megalith
