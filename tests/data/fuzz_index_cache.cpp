#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/error.h"
#include "data/memory_file.h"
#include "data/order/gpt_index.h"
#include "data/order/index_file.h"

namespace {
using megalith::data::GptIndex;
using megalith::data::IndexFile;
using megalith::data::MemoryFile;

void use(const std::string& path) {
  const GptIndex index(std::make_shared<const IndexFile>(path, 1, megalith::data::IndexKey{}));
  for (int64_t i = 0; i < index.size() && i < 1000; ++i) index.sequence_at(index.start(i).position);
  index.document_index();
}

// Arrays and numbers of the fuzzer's choice in a file whose checksums are right: past the checksums, nothing but the
// checks of what the numbers say stands between a file and memory that is not its own.
void write_forged(const std::string& path, const uint8_t* data, size_t size) {
  IndexFile::Numbers numbers{};
  for (size_t i = 0; i < 6; ++i) numbers[i] = static_cast<int8_t>(data[i]);
  const std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data + 10), size - 10);
  IndexFile::Arrays arrays;
  size_t at = 0;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const size_t count = std::min<size_t>(data[6 + i], rest.size() - at);
    arrays[i] = rest.subspan(at, count);
    at += count;
  }
  IndexFile::write(path, 1, {}, numbers, arrays);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const MemoryFile file({reinterpret_cast<const char*>(data), size});
    use(file.path());
  } catch (const megalith::Error&) {
  }
  if (size < 10) return 0;
  static const std::string forged =
      (std::filesystem::temp_directory_path() / ("megalith-fuzz-index-" + std::to_string(::getpid()))).string();
  try {
    write_forged(forged, data, size);
    use(forged);
  } catch (const megalith::Error&) {
  }
  ::unlink(forged.c_str());
  return 0;
}
