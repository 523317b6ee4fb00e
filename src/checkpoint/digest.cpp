#include "checkpoint/digest.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <new>

namespace megalith::checkpoint {

namespace {
std::string to_hex(XXH64_hash_t hash) {
  return fmt::format("{:016x}", hash);
}
}  // namespace

struct Digest::State {
  State() : xxh3(XXH3_createState()) {
    if (xxh3 == nullptr) throw std::bad_alloc();
  }
  ~State() { XXH3_freeState(xxh3); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxh3;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  reset();
}
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

void Digest::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
}
std::string Digest::hex() const {
  return to_hex(XXH3_64bits_digest(state_->xxh3));
}
void Digest::reset() {
  XXH3_64bits_reset(state_->xxh3);
}

std::string digest_of(std::span<const std::byte> bytes) {
  return to_hex(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string digest_of_chunks(const std::vector<std::string>& chunks) {
  return digest_of(fmt::format("{}", fmt::join(chunks, "")));
}

FileDigests digests_of(std::span<const std::byte> image, ThreadPool& pool) {
  FileDigests digests{.bytes = static_cast<int64_t>(image.size()), .whole = {}, .chunks = {}};
  const auto chunk_bytes = static_cast<size_t>(digests.chunk_bytes);
  digests.chunks.resize((image.size() + chunk_bytes - 1) / chunk_bytes);
  pool.run(std::ssize(digests.chunks), [&](int64_t chunk) {
    const auto rest = image.subspan(static_cast<size_t>(chunk) * chunk_bytes);
    digests.chunks[static_cast<size_t>(chunk)] = digest_of(rest.first(std::min(rest.size(), chunk_bytes)));
  });
  digests.whole = digest_of_chunks(digests.chunks);
  return digests;
}

bool is_digest(std::string_view text) {
  return text.size() == Digest::kHexLength &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace megalith::checkpoint
