#include "checkpoint/nodes/served_bytes.h"

namespace megalith::checkpoint {

namespace {

class ServedShard final : public ByteSource {
 public:
  ServedShard(std::shared_ptr<comm::ByteReader> reader, std::string name, const FileDigests& shard)
      : reader_(std::move(reader)), name_(std::move(name)), offered_as_(served_name(shard)), bytes_(shard.bytes) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return bytes_; }
  void read_at(int64_t offset, std::span<std::byte> into) override {
    as_io([&] { reader_->read(offered_as_, offset, into); });
  }

 private:
  std::shared_ptr<comm::ByteReader> reader_;
  std::string name_;
  std::string offered_as_;
  int64_t bytes_;
};

}  // namespace

std::string served_name(const FileDigests& shard) {
  return fmt::format("{}-{}", shard.whole, shard.bytes);
}

std::unique_ptr<ByteSource> served_shard(std::shared_ptr<comm::ByteReader> reader, std::string where,
                                         const FileDigests& shard) {
  return std::make_unique<ServedShard>(std::move(reader), std::move(where), shard);
}

}  // namespace megalith::checkpoint
