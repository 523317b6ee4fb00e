#include "data/prepare/read/byte_source.h"

#include <array>
#include <cstring>

#include "core/error.h"
#include "data/prepare/read/compressed_sources.h"

namespace megalith::data {

namespace {
enum class Content { plain, gzip, zstd };

struct Foreign {
  std::string_view magic;
  const char* what;
};
constexpr std::array kForeign = {
    Foreign{"BZh", "compressed with bzip2"},
    Foreign{{"\xFD"
             "7zX",
             4},
            "compressed with xz"},
    Foreign{{"PK\x03\x04", 4}, "a zip archive"},
    Foreign{"PAR1", "a Parquet file (read where its name ends in .parquet or --format says so)"}};

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(FileBlocks blocks) : blocks_(std::move(blocks)) {}
  size_t read(std::span<char> into) override { return blocks_.read(into); }
  int64_t consumed() const override { return blocks_.offset(); }

 private:
  FileBlocks blocks_;
};

Content content_of(const std::filesystem::path& path, int64_t& size) {
  const File file = File::open_for_reading(path);
  size = file.size();
  std::array<unsigned char, 4> head{};
  file.read_at(0, std::as_writable_bytes(std::span(head).first(static_cast<size_t>(std::min<int64_t>(size, 4)))));
  if (size >= 2 && head[0] == 0x1f && head[1] == 0x8b) return Content::gzip;
  uint32_t magic = 0;
  std::memcpy(&magic, head.data(), sizeof magic);
  const std::string_view begin(reinterpret_cast<const char*>(head.data()),
                               static_cast<size_t>(std::min<int64_t>(size, 4)));
  for (const Foreign& foreign : kForeign) {
    if (begin.starts_with(foreign.magic)) {
      data_error("{}: byte 0: this is {}, which is not read here: turn it into .jsonl, .jsonl.gz or .jsonl.zst",
                 path.string(), foreign.what);
    }
  }
  if (size >= 4 && (magic == 0xFD2FB528u || (magic & 0xFFFFFFF0u) == 0x184D2A50u)) return Content::zstd;
  return Content::plain;
}
}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path, const ReadOptions& options) {
  int64_t size = 0;
  const Content content = content_of(path, size);
  const std::string extension = path.extension().string();
  if (content == Content::plain && (extension == ".gz" || extension == ".zst")) {
    if (size == 0) data_error("{}: the file is empty, a compressed file never is", path.string());
    data_error("{}: byte 0: the name says {}, the content is not compressed with it", path.string(),
               extension == ".gz" ? "gzip" : "zstd");
  }
  FileBlocks blocks(path, options.block_bytes);
  if (content == Content::gzip) return make_gzip_source(std::move(blocks));
  if (content == Content::zstd) return make_zstd_source(std::move(blocks), options.zstd_window_log);
  return std::make_unique<PlainSource>(std::move(blocks));
}

}  // namespace megalith::data
