#include <zlib.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "data/prepare/read/compressed_sources.h"

namespace megalith::data {

namespace {
class GzipSource : public ByteSource {
 public:
  explicit GzipSource(FileBlocks blocks) : blocks_(std::move(blocks)) {
    // 16: a gzip header is demanded, so that other data behind a member is an error.
    MEGALITH_CHECK(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK, "zlib does not start");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  int64_t consumed() const override { return blocks_.offset() - stream_.avail_in; }

  size_t read(std::span<char> into) override {
    const size_t wanted = std::min<size_t>(into.size(), std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(wanted);
    while (stream_.avail_out > 0 && !(member_ended_ && !refill())) {
      if (member_ended_) {
        inflateReset(&stream_);
        member_ended_ = false;
      }
      if (!refill()) data_error("{}: byte {}: the gzip data is cut off", blocks_.path().string(), consumed());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        member_ended_ = true;
      } else if (status != Z_OK) {
        data_error("{}: byte {}: the gzip data is damaged or followed by something else: {}", blocks_.path().string(),
                   consumed(), stream_.msg != nullptr ? stream_.msg : zError(status));
      }
    }
    return wanted - stream_.avail_out;
  }

 private:
  // False at the end of the file.
  bool refill() {
    if (stream_.avail_in > 0) return true;
    const auto block = blocks_.next();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(block.data()));
    stream_.avail_in = static_cast<uInt>(block.size());
    return !block.empty();
  }

  FileBlocks blocks_;
  z_stream stream_{};
  bool member_ended_ = false;
};
}  // namespace

std::unique_ptr<ByteSource> make_gzip_source(FileBlocks blocks) {
  return std::make_unique<GzipSource>(std::move(blocks));
}

}  // namespace megalith::data
