#include "core/hash/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <new>

namespace megalith {

namespace {
std::string to_hex(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}
}  // namespace

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string Hash128::hex() const {
  return to_hex(high) + to_hex(low);
}

Hash128 hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

Digest::Digest() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_);
}

Digest::~Digest() {
  XXH3_freeState(state_);
}

Digest::Digest(const Digest& other) : Digest() {
  XXH3_copyState(state_, other.state_);
}

Digest& Digest::operator=(const Digest& other) {
  if (this != &other) XXH3_copyState(state_, other.state_);
  return *this;
}

void Digest::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_, bytes.data(), bytes.size());
}

std::string Digest::hex() const {
  return to_hex(XXH3_64bits_digest(state_));
}

std::string digest_of(std::span<const std::byte> bytes) {
  return to_hex(hash64(bytes));
}

bool is_digest(std::string_view text) {
  return text.size() == Digest::kHexLength &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace megalith
