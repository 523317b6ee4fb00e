#include "data/prepare/write/shard_index.h"

#include <functional>

#include "core/error.h"
#include "core/file.h"
#include "data/prepare/write/index_stream.h"

namespace megalith::data {

IndexStream::IndexStream(const std::filesystem::path& path, TokenType type, int64_t sequences, int64_t documents)
    : file_(open_part_file(path)), promised_(34 + 12 * sequences + 8 * (documents + 1)) {
  for (const char c : std::string_view("MMIDIDX\0\0", 9)) put(c);
  put(uint64_t{1});
  put(megatron_code(type));
  put(static_cast<uint64_t>(sequences));
  put(static_cast<uint64_t>(documents + 1));
}

void IndexStream::flush() {
  file_.write(buffer_);
  digest_.add(buffer_);
  bytes_ += std::ssize(buffer_);
  buffer_.clear();
}

WrittenFile IndexStream::finish() {
  flush();
  MEGALITH_CHECK(bytes_ == promised_, "{} has {} bytes instead of {}", file_.path().string(), bytes_, promised_);
  file_.sync();
  return {bytes_, digest_.hex()};
}

namespace {
void for_each_length(const File& file, const std::function<void(int32_t)>& use) {
  std::vector<int32_t> block(size_t{1} << 18);
  const int64_t count = file.size() / int64_t{sizeof(int32_t)};
  for (int64_t at = 0; at < count;) {
    const auto part = std::span(block).first(static_cast<size_t>(std::min<int64_t>(count - at, std::ssize(block))));
    file.read_at(at * int64_t{sizeof(int32_t)}, std::as_writable_bytes(part));
    for (const int32_t length : part) use(length);
    at += std::ssize(part);
  }
}
}  // namespace

WrittenFile write_index(const std::filesystem::path& path, const std::filesystem::path& lengths, TokenType type) {
  const File file = File::open_for_reading(lengths);
  int64_t documents = 0;
  int64_t sequences = 0;
  for_each_length(file, [&](int32_t length) {
    ++documents;
    sequences += length > 0 ? 1 : 0;
  });
  IndexStream index(path, type, sequences, documents);
  for_each_length(file, [&](int32_t length) {
    if (length > 0) index.put(length);
  });
  int64_t pointer = 0;
  for_each_length(file, [&](int32_t length) {
    if (length > 0) index.put(pointer);
    pointer += length * size_of(type);
  });
  int64_t begin = 0;
  index.put(begin);
  for_each_length(file, [&](int32_t length) { index.put(begin += length > 0 ? 1 : 0); });
  return index.finish();
}

}  // namespace megalith::data
