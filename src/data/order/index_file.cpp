#include "data/order/index_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "core/file.h"

namespace megalith::data {

namespace {
constexpr uint64_t kMagic = 0x3158444e494c474du;  // "MGLINDX1"
constexpr size_t kChunk = 65536;
constexpr size_t kAlignment = 64;

size_t chunks_of(size_t bytes) {
  return (bytes + kChunk - 1) / kChunk;
}

size_t aligned(size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t load_word(std::span<const std::byte> bytes, size_t index) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + 8 * index, sizeof(word));
  return word;
}
}  // namespace

struct IndexFile::Header {
  uint64_t magic = kMagic;
  uint64_t kind = 0;
  uint64_t key_low = 0;
  uint64_t key_high = 0;
  uint64_t chunk = kChunk;
  uint64_t chunks = 0;
  uint64_t file_size = 0;
  Numbers numbers{};
  struct {
    uint64_t offset, bytes;
  } arrays[kArrays]{};
  uint64_t hash = 0;  // last

  static constexpr size_t kHashed = 216;

  uint64_t hash_with(std::span<const std::byte> chunk_hashes) const {
    return hash64(chunk_hashes, hash64(std::as_bytes(std::span(this, 1)).first(kHashed)));
  }
};

void IndexFile::damaged(const std::string& why) const {
  throw DamagedIndex(fmt::format("{} is damaged: {}", path_.string(), why));
}

IndexFile::IndexFile(const std::filesystem::path& path, uint64_t kind, const IndexKey& key) : path_(path), file_(path) {
  static_assert(sizeof(Header) == Header::kHashed + 8);
  const auto bytes = file_.bytes();
  Header header;
  if (bytes.size() < sizeof(Header)) damaged("it is shorter than a header");
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof(Header));
  if (header.magic != kMagic) damaged("it does not begin as an index file");
  if (header.file_size != bytes.size()) {
    damaged(fmt::format("it should have {} bytes and has {}", header.file_size, bytes.size()));
  }
  if (header.chunks > (bytes.size() - sizeof(Header)) / 8) damaged("its header asks for more than the file holds");
  const size_t begin = sizeof(Header) + 8 * header.chunks;
  chunk_hashes_ = bytes.subspan(sizeof(Header), 8 * header.chunks);
  if (header.hash != header.hash_with(chunk_hashes_)) damaged("its header does not match its checksum");
  if (header.kind != kind || IndexKey{header.key_low, header.key_high} != key || header.chunk != kChunk) {
    damaged("it is the index of something else");
  }
  size_t chunks = 0;
  for (size_t i = 0; i < kArrays; ++i) {
    const auto [offset, length] = header.arrays[i];
    if (offset < begin || offset > bytes.size() || length > bytes.size() - offset ||
        (length > 0 && offset % kAlignment != 0)) {
      damaged("an array lies outside of it");
    }
    arrays_[i] = bytes.subspan(offset, length);
    first_chunk_[i] = chunks;
    chunks += chunks_of(length);
  }
  if (chunks != header.chunks) damaged("its arrays and checksums do not match");
  numbers_ = header.numbers;
  verified_ = std::vector<std::atomic<bool>>(chunks);
}

void IndexFile::verify(const void* begin, size_t bytes) const {
  const auto* const at = static_cast<const std::byte*>(begin);
  const auto which = static_cast<size_t>(
      std::find_if(arrays_.begin(), arrays_.end(),
                   [&](const auto& array) { return at >= array.data() && at + bytes <= array.data() + array.size(); }) -
      arrays_.begin());
  MEGALITH_CHECK(which < kArrays, "bytes outside of the arrays of {}", path_.string());
  if (bytes == 0) return;
  const auto array = arrays_[which];
  const auto offset = static_cast<size_t>(at - array.data());
  for (size_t chunk = offset / kChunk; chunk <= (offset + bytes - 1) / kChunk; ++chunk) {
    const size_t number = first_chunk_[which] + chunk;
    if (verified_[number].load(std::memory_order_acquire)) continue;
    const auto content = array.subspan(chunk * kChunk, std::min(kChunk, array.size() - chunk * kChunk));
    if (hash64(content) != load_word(chunk_hashes_, number)) damaged(fmt::format("chunk {} is not as written", number));
    verified_[number].store(true, std::memory_order_release);
  }
}

void IndexFile::write(const std::filesystem::path& path, uint64_t kind, const IndexKey& key, const Numbers& numbers,
                      const Arrays& arrays) {
  Header header;
  header.kind = kind;
  header.key_low = key.low;
  header.key_high = key.high;
  header.numbers = numbers;
  std::vector<uint64_t> hashes;
  for (const auto& array : arrays) {
    for (size_t at = 0; at < array.size(); at += kChunk) {
      hashes.push_back(hash64(array.subspan(at, std::min(kChunk, array.size() - at))));
    }
  }
  header.chunks = hashes.size();
  size_t offset = sizeof(Header) + 8 * hashes.size();
  for (size_t i = 0; i < kArrays; ++i) {
    if (!arrays[i].empty()) offset = aligned(offset);
    header.arrays[i] = {offset, arrays[i].size()};
    offset += arrays[i].size();
  }
  header.file_size = offset;
  header.hash = header.hash_with(std::as_bytes(std::span(hashes)));

  // Several processes may write the same index: each does so under a name of its own, and the last rename stands.
  std::filesystem::path part = path;
  part += fmt::format(".{}-{:08x}.part", ::getpid(), std::random_device{}());
  try {
    File file = File::open_for_appending(part);
    file.write(std::as_bytes(std::span(&header, 1)));
    file.write(std::as_bytes(std::span(hashes)));
    size_t written = sizeof(Header) + 8 * hashes.size();
    constexpr std::array<std::byte, kAlignment> kPad{};
    for (size_t i = 0; i < kArrays; ++i) {
      file.write(std::span(kPad).first(header.arrays[i].offset - written));
      file.write(arrays[i]);
      written = header.arrays[i].offset + arrays[i].size();
    }
    rename_over(part, path);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
}

}  // namespace megalith::data
