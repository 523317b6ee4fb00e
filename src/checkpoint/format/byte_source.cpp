#include "checkpoint/format/byte_source.h"

#include "checkpoint/file_names.h"

namespace megalith::checkpoint {

namespace {

class FileSource final : public ByteSource {
 public:
  explicit FileSource(File file) : file_(std::move(file)), name_(file_.path().string()) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return file_.size(); }
  void read_at(int64_t offset, std::span<std::byte> into) override { file_.read_at(offset, into); }

 private:
  File file_;
  std::string name_;
};

}  // namespace

ShardPlace::ShardPlace(const std::filesystem::path& path)
    : name(path.string()), file(path), open([path] { return std::make_unique<FileSource>(open_plain_file(path)); }) {}

}  // namespace megalith::checkpoint
