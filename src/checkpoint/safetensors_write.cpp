#include <fcntl.h>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "checkpoint/safetensors.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace {
// Passes bytes on to a file and digests them on the way. Small pieces are gathered, large ones are written from where
// they lie.
class DigestingWriter {
 public:
  DigestingWriter(File& file, int64_t chunk_bytes) : file_(file) {
    MEGALITH_CHECK(chunk_bytes > 0, "chunks of {} bytes", chunk_bytes);
    result_.chunk_bytes = chunk_bytes;
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const int64_t room = result_.chunk_bytes - result_.bytes % result_.chunk_bytes;
      const auto part = bytes.first(std::min(bytes.size(), static_cast<size_t>(room)));
      chunk_.update(part);
      whole_.update(part);
      pass_on(part);
      result_.bytes += static_cast<int64_t>(part.size());
      if (result_.bytes % result_.chunk_bytes == 0) end_chunk();
      bytes = bytes.subspan(part.size());
    }
  }

  FileDigests finish() {
    flush();
    if (result_.bytes % result_.chunk_bytes != 0) end_chunk();
    result_.whole = whole_.hex();
    return std::move(result_);
  }

 private:
  static constexpr size_t kSmall = size_t{64} << 10;
  static constexpr size_t kGathered = size_t{1} << 20;

  void pass_on(std::span<const std::byte> part) {
    if (part.size() >= kSmall) {
      flush();
      file_.write(part);
      return;
    }
    gathered_.insert(gathered_.end(), part.begin(), part.end());
    if (gathered_.size() >= kGathered) flush();
  }

  void flush() {
    if (!gathered_.empty()) file_.write(gathered_);
    gathered_.clear();
  }

  void end_chunk() {
    result_.chunks.push_back(chunk_.hex());
    chunk_.reset();
  }

  File& file_;
  FileDigests result_;
  Digest chunk_;
  Digest whole_;
  std::vector<std::byte> gathered_;
};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// Written by hand: nlohmann's ordered object looks every key up from the front, which is quadratic.
std::string make_header(std::span<const TensorView* const> order, const Metadata& metadata) {
  std::unordered_set<std::string> names;
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + nlohmann::json(metadata).dump();
  int64_t offset = 0;
  for (const TensorView* view : order) {
    MEGALITH_CHECK(is_tensor_name(view->name), "'{}' cannot name a tensor in a file", view->name);
    MEGALITH_CHECK(names.insert(view->name).second, "tensor '{}' is written twice", view->name);
    std::vector<int64_t> dims;
    for (int i = 0; i < view->tensor.shape.rank(); ++i) dims.push_back(view->tensor.shape[i]);
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", text.size() > 1 ? "," : "",
                        quoted(view->name), safetensors_type(view->tensor.dtype), fmt::join(dims, ","), offset,
                        offset + view->tensor.bytes());
    offset += view->tensor.bytes();
  }
  text += "}";
  text.append(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), 8)) - text.size(), ' ');
  return text;
}

// A disk that is too small says so before the hours of writing, where the file system can tell.
void reserve(const File& file, int64_t bytes) {
  if (bytes > 0 && ::fallocate(file.descriptor(), FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && errno == ENOSPC) {
    io_error_errno(fmt::format("no room for the {} bytes of {}", bytes, file.path().string()));
  }
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data), static_cast<size_t>(tensor.bytes())};
}
}  // namespace

FileDigests write_safetensors(File& file, std::span<const TensorView> tensors, const Metadata& metadata,
                              int64_t chunk_bytes) {
  std::vector<const TensorView*> order;
  int64_t data_bytes = 0;
  for (const TensorView& view : tensors) {
    MEGALITH_CHECK(view.tensor && view.tensor.device == Device::cpu, "tensor '{}' is not in CPU memory", view.name);
    order.push_back(&view);
    data_bytes += view.tensor.bytes();
  }
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return size_of(a->tensor.dtype) > size_of(b->tensor.dtype);
  });
  const std::string header = make_header(order, metadata);
  MEGALITH_CHECK(static_cast<int64_t>(header.size()) <= SafetensorsReader::kMaxHeaderBytes &&
                     static_cast<int64_t>(order.size()) < SafetensorsReader::kMaxTensors,
                 "{} tensors are too many for one file", order.size());
  reserve(file, 8 + static_cast<int64_t>(header.size()) + data_bytes);

  DigestingWriter writer(file, chunk_bytes);
  std::byte length[8];
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xff);
  writer.write(length);
  writer.write(std::as_bytes(std::span(header)));
  for (const TensorView* view : order) {
    if (view->tensor.contiguous()) {
      writer.write(bytes_of(view->tensor));
      continue;
    }
    for (int64_t row = 0; row < view->tensor.rows(); ++row)
      writer.write(bytes_of(view->tensor.slice_rows(row, row + 1)));
  }
  return writer.finish();
}

}  // namespace megalith::checkpoint
