#include "core/hash/crypto.h"

#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>

#include "core/error.h"

namespace megalith {

namespace {
constexpr size_t kHashBytes = 32;
using HashBytes = std::array<unsigned char, kHashBytes>;
}  // namespace

Sha256::Sha256() : state_(::EVP_MD_CTX_new(), ::EVP_MD_CTX_free) {
  const bool ready = state_ && ::EVP_DigestInit_ex(state_.get(), ::EVP_sha256(), nullptr) == 1;
  MEGALITH_CHECK(ready, "libcrypto has no SHA-256");
}

void Sha256::add(std::span<const std::byte> bytes) {
  MEGALITH_CHECK(::EVP_DigestUpdate(state_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

std::string Sha256::hex() {
  HashBytes hash{};
  MEGALITH_CHECK(::EVP_DigestFinal_ex(state_.get(), hash.data(), nullptr) == 1, "SHA-256 failed");
  return fmt::format("{:02x}", fmt::join(hash, ""));
}

std::string keyed_hash(std::string_view key, std::string_view text) {
  HashBytes hash{};
  const char* const key_bytes = key.empty() ? "" : key.data();  // libcrypto takes a null pointer for no key at all
  const unsigned char* const done =
      ::HMAC(::EVP_sha256(), key_bytes, static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data(), nullptr);
  MEGALITH_CHECK(done != nullptr, "libcrypto has no HMAC-SHA256");
  return {hash.begin(), hash.end()};
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) io_error_errno("asking for random bytes");
  return bytes;
}

}  // namespace megalith
