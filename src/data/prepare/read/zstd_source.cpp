#include <zstd.h>

#include "core/error.h"
#include "data/prepare/read/compressed_sources.h"

namespace megalith::data {

namespace {
class ZstdSource : public ByteSource {
 public:
  ZstdSource(FileBlocks blocks, int window_log) : blocks_(std::move(blocks)), stream_(ZSTD_createDStream()) {
    MEGALITH_CHECK(stream_ != nullptr, "libzstd does not start");
    const size_t status = ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, window_log);
    if (ZSTD_isError(status) != 0) user_error("a zstd window of 2^{} bytes is not possible", window_log);
  }

  int64_t consumed() const override { return blocks_.offset() - static_cast<int64_t>(in_.size - in_.pos); }

  size_t read(std::span<char> into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos < out.size) {
      // A full output may leave more inside of the stream: the file is asked for more only when it gave all it had.
      if (in_.pos == in_.size && !drain_) refill();
      if (in_.pos == in_.size && !drain_) {
        if (!frame_ended_) data_error("{}: byte {}: the zstd data is cut off", blocks_.path().string(), consumed());
        break;
      }
      const size_t before = out.pos;
      const size_t status = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(status) != 0) {
        data_error("{}: byte {}: the zstd data is damaged or followed by something else: {}{}", blocks_.path().string(),
                   consumed(), ZSTD_getErrorName(status), hint(status));
      }
      frame_ended_ = status == 0;
      drain_ = !frame_ended_ && out.pos == out.size && out.pos > before;
    }
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  static const char* hint(size_t status) {
    const std::string_view name = ZSTD_getErrorName(status);
    if (name.find("too much memory") != std::string_view::npos) return " (give a larger --zstd-window-log, at most 31)";
    if (name.find("Dictionary") != std::string_view::npos) return " (files made with a dictionary are not supported)";
    return "";
  }

  void refill() {
    const auto block = blocks_.next();
    in_ = {block.data(), block.size(), 0};
  }

  FileBlocks blocks_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool frame_ended_ = true;
  bool drain_ = false;  // output was full last time
};
}  // namespace

std::unique_ptr<ByteSource> make_zstd_source(FileBlocks blocks, int window_log) {
  return std::make_unique<ZstdSource>(std::move(blocks), window_log);
}

}  // namespace megalith::data
