#include "data/prepare/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace megalith::data {

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
  return fmt::format("{:016x}", XXH3_64bits_digest(state_));
}

std::string digest_of(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.hex();
}

}  // namespace megalith::data
